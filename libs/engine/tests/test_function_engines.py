"""Engines made of functions: what a function says reaches its ticket, and what it does wrong ends nothing else."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused, Ticket, unpacked
from weft_engine import canary
from weft_engine.functions import Cancelled, FunctionAdapter, Functions, Question
from weft_engine.functions.function_engine import FunctionEngine
from weft_engine.launch import Launch


class Outlet:
    """Takes no notice: tests read tickets."""

    def touch(self, ticket: Ticket) -> None: ...


OUTLET = Outlet()


def launched(**fields: Any) -> Launch:
    known = {"replica": "m-1", "incarnation": "i-1", "node": "n-1", "revision_digest": "d", "engine": "own"}
    return Launch.model_validate({**known, "context_tokens": 1, "concurrency": 1, **fields})


def engine(functions: Functions, **changes: Any) -> FunctionEngine:
    fields = {"context_tokens": 64, "concurrency": 2, "max_waiting": 2, **changes}
    return FunctionEngine(launched(**fields), functions, "1.0")


def ask(engine: FunctionEngine, words: str, **fields: Any) -> Ticket:
    ticket = Ticket(1, OUTLET)
    prompt = pb.Prompt(chat=pb.Chat(messages=[pb.Message(role="user", content=words)]))
    engine.submit(pb.Submit(**fields), prompt, ticket)
    return ticket


def text_of(ticket: Ticket) -> str:
    return "".join(text for text, _, _ in ticket.segments)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def ended(ticket: Ticket) -> pb.Finish.ValueType:
    await until(lambda: ticket.ending is not None)
    assert ticket.ending is not None
    return ticket.ending.finish


def words_of(question: Question) -> Iterator[str]:
    for word in question.last.split():
        yield word + " "


def endless(question: Question) -> Iterator[str]:
    while True:
        yield "on "


async def test_what_a_function_yields_is_the_answer_and_each_piece_counts() -> None:
    ticket = ask(engine(Functions(write=words_of)), "warp and weft")

    assert pb.FINISH_STOP == await ended(ticket)
    assert "warp and weft " == text_of(ticket)
    assert ticket.ending is not None
    assert (3, 3) == (ticket.ending.prompt_tokens, ticket.ending.output_tokens)


async def test_a_list_is_an_answer_too() -> None:
    assert "ab" == text_of(await whole(engine(Functions(write=lambda question: ["a", "b"])), "x"))


async def test_a_text_is_an_answer_of_one_piece() -> None:
    ticket = await whole(engine(Functions(write=lambda question: "all at once")), "x")
    assert "all at once" == text_of(ticket)
    assert ticket.ending is not None
    assert 1 == ticket.ending.output_tokens


async def whole(engine: FunctionEngine, words: str) -> Ticket:
    ticket = ask(engine, words)
    await ended(ticket)
    return ticket


async def test_an_answer_ends_at_its_limit_and_its_generator_is_closed() -> None:
    closed = threading.Event()

    def write(question: Question) -> Iterator[str]:
        try:
            yield from endless(question)
        finally:
            closed.set()

    ticket = ask(engine(Functions(write=write)), "x", max_tokens=5)
    assert pb.FINISH_LENGTH == await ended(ticket)
    assert "on " * 5 == text_of(ticket)
    assert await asyncio.to_thread(closed.wait, 30)


async def test_without_a_limit_the_context_is_the_limit() -> None:
    ticket = ask(engine(Functions(write=endless)), "one two three four")
    assert pb.FINISH_LENGTH == await ended(ticket)
    assert ticket.ending is not None
    assert 60 == ticket.ending.output_tokens


async def test_a_stop_string_over_pieces_ends_the_answer_before_it() -> None:
    ticket = ask(engine(Functions(write=words_of)), "one two three", stop=["e tw"])
    assert pb.FINISH_STOP == await ended(ticket)
    assert "on" == text_of(ticket)


async def test_a_cancel_ends_the_request_at_once_and_its_place_when_the_function_lets_go() -> None:
    # given one place, held by a function that waits for something of its own
    held = threading.Event()

    def write(question: Question) -> Iterator[str]:
        question.on_cancel(held.set)
        assert held.wait(30)
        yield "too late"

    made = engine(Functions(write=write), concurrency=1)
    first = ask(made, "x")
    await until(lambda: made.load().running == 1)
    # when
    made.cancel(first)
    # then
    assert first.ending is not None
    assert pb.FINISH_CANCELLED == first.ending.finish
    await until(lambda: made.load().running == 0)
    assert "" == text_of(first)


async def test_on_cancel_is_called_at_once_where_nobody_waits_any_more() -> None:
    question = Question((), "x", 1, None, None, pb.Sampling())
    question.cancel()
    called = threading.Event()
    question.on_cancel(called.set)
    assert called.is_set()
    with pytest.raises(Cancelled):
        question.working()


async def test_what_runs_and_waits_is_bounded_and_the_next_is_refused_as_busy() -> None:
    held = threading.Event()

    def write(question: Question) -> Iterable[str]:
        held.wait(30)
        return [question.last]

    made = engine(Functions(write=write))
    tickets = [ask(made, str(i)) for i in range(4)]
    with pytest.raises(RequestRefused) as refused:
        ask(made, "one more")
    assert pb.FAULT_BUSY == refused.value.fault
    assert (2, 2) == (made.load().running, made.load().waiting)
    made.cancel(tickets[3])
    held.set()
    assert [pb.FINISH_STOP] * 3 == [await ended(ticket) for ticket in tickets[:3]]
    assert pb.FINISH_CANCELLED == await ended(tickets[3])


def divides(question: Question) -> Any:
    return 1 / 0


def says_bytes(question: Question) -> Any:
    return [b"bytes"]


def says_nothing(question: Question) -> Any:
    return None


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (divides, "the engine failed: ZeroDivisionError: division by zero"),
        (says_bytes, "the function yielded bytes, want text"),
        (says_nothing, "the function answered with NoneType, want text or pieces of text"),
    ],
)
async def test_a_function_that_fails_ends_its_own_request_with_a_sentence(write: Any, sentence: str) -> None:
    made = engine(Functions(write=lambda question: write(question) if question.last == "fail" else ["fine"]))
    ticket = ask(made, "fail")
    assert pb.FINISH_ERROR == await ended(ticket)
    assert ticket.ending is not None
    assert pb.FAULT_ENGINE == ticket.ending.fault
    assert sentence in ticket.ending.error
    assert "fine" == text_of(await whole(made, "next"))


async def test_a_function_may_refuse_a_request_by_its_field() -> None:
    def write(question: Question) -> Iterator[str]:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "no questions about seeds", "seed")

    ticket = ask(engine(Functions(write=write)), "x")
    assert pb.FINISH_ERROR == await ended(ticket)
    assert ticket.ending is not None
    assert (pb.FAULT_BAD_REQUEST, "seed") == (ticket.ending.fault, ticket.ending.field)


async def test_what_it_does_not_honour_is_refused_by_name_and_what_it_does_reaches_it() -> None:
    seen: list[float] = []

    def write(question: Question) -> Sequence[str]:
        seen.append(question.sampling.top_p)
        return ["x"]

    with pytest.raises(RequestRefused, match="the own engine can't honour `top_p`"):
        ask(engine(Functions(write=write)), "x", sampling=pb.Sampling(top_p=0.5))
    ticket = ask(engine(Functions(write=write, honours=("top_p",))), "x", sampling=pb.Sampling(top_p=0.5))
    assert pb.FINISH_STOP == await ended(ticket)
    assert [0.5] == seen


async def test_a_prompt_beyond_the_context_and_token_ids_are_refused_in_a_sentence() -> None:
    made = engine(Functions(write=words_of))
    with pytest.raises(RequestRefused, match="the prompt has 100 tokens, the context holds 64 with the answer"):
        ask(made, "word " * 100)
    with pytest.raises(RequestRefused, match="has no tokenizer"):
        made.submit(pb.Submit(), pb.Prompt(tokens=pb.TokenIds(ids=[1])), Ticket(1, OUTLET))
    with pytest.raises(RequestRefused, match="can't go on where another replica stopped"):
        ask(made, "x", resume=pb.Resume(text_sent="so far"))


async def test_a_long_piece_travels_in_parts_and_half_characters_become_marks() -> None:
    ticket = ask(engine(Functions(write=lambda question: ["a" * 40_000, "\ud83d"])), "x")
    assert pb.FINISH_STOP == await ended(ticket)
    assert "a" * 40_000 + "?" == text_of(ticket)
    assert max(len(text) for text, _, _ in ticket.segments) <= 16 * 1024


async def test_a_function_that_is_fast_waits_for_the_loop() -> None:
    # given a function that yields as fast as it can, and a loop that is held
    made = 0

    def write(question: Question) -> Iterator[str]:
        nonlocal made
        while made < 10_000:
            made += 1
            yield "x"

    ticket = ask(engine(Functions(write=write), context_tokens=20_000), "x")
    time.sleep(0.3)  # noqa: ASYNC251  # the loop is held on purpose
    # then it is a few pieces ahead and no more
    assert made <= 80
    assert pb.FINISH_STOP == await ended(ticket)
    assert 10_000 == len(text_of(ticket))


async def test_signs_of_work_count_as_steps() -> None:
    go = threading.Event()

    def write(question: Question) -> Iterator[str]:
        for _ in range(3):
            question.working()
        go.wait(30)
        yield "x"

    made = engine(Functions(write=write))
    ticket = ask(made, "x")
    await until(lambda: made.load().steps == 3)
    assert 1 == made.load().running
    go.set()
    assert pb.FINISH_STOP == await ended(ticket)
    await until(lambda: made.load().running == 0)
    assert made.load().steps > 3


@pytest.mark.parametrize(("said", "asked"), [("", "a"), ("select 1", "select 1")])
async def test_functions_say_with_which_text_weft_itself_asks_them(said: str, asked: str) -> None:
    heard: list[str] = []

    def write(question: Question) -> Iterator[str]:
        heard.append(question.last)
        yield "1"

    def embed(texts: list[str]) -> Iterable[Sequence[float]]:
        heard.extend(texts)
        return [[1.0]]

    def rerank(query: str, texts: list[str]) -> list[float]:
        heard.extend((query, *texts))
        return [1.0]

    for functions in (Functions(write=write), Functions(embed=embed), Functions(rerank=rerank)):
        await asyncio.wait_for(canary.ask(engine(replace(functions, canary=said))), 30)
    assert [asked] * 4 == heard


async def test_vectors_come_as_they_were_made_and_wrong_ones_fail_by_what_is_wrong() -> None:
    made = engine(Functions(embed=lambda texts: [[float(len(text)), 0.5] for text in texts]))
    answer = await made.embed(["one two", "three"])
    assert [[7.0, 0.5], [5.0, 0.5]] == [list(unpacked(vector)) for vector in answer.vectors]
    assert 3 == answer.prompt_tokens
    with pytest.raises(RequestRefused, match="give texts, not token ids"):
        await made.embed([[1, 2]])
    with pytest.raises(RequestRefused, match="writes no text"):
        ask(made, "x")

    wrong: dict[str, Callable[[list[str]], list[list[float]]]] = {
        "1 vectors": lambda texts: [[1.0]],
        r"lengths \[1, 2\]": lambda texts: [[1.0], [1.0, 2.0]],
        r"lengths \[0\]": lambda texts: [[], []],
        "no finite number": lambda texts: [[float("nan")], [1.0]],
    }
    for sentence, embed in wrong.items():
        with pytest.raises(RequestRefused, match=sentence) as refused:
            await engine(Functions(embed=embed)).embed(["a", "b"])
        assert pb.FAULT_ENGINE == refused.value.fault


async def test_scores_come_in_order_and_a_missing_one_is_a_failure() -> None:
    made = engine(Functions(rerank=lambda query, texts: [float(len(text)) for text in texts]))
    scores = await made.rerank("q r", ["abc", "a"])
    assert ([3.0, 1.0], 4) == (list(scores.scores), scores.prompt_tokens)
    with pytest.raises(RequestRefused, match="1 scores for 2 texts"):
        await engine(Functions(rerank=lambda query, texts: [1.0])).rerank("q", ["a", "b"])


async def test_a_call_that_nobody_waits_for_keeps_its_place_until_it_ends() -> None:
    go = threading.Event()

    def embed(texts: list[str]) -> list[list[float]]:
        go.wait(30)
        return [[1.0]]

    made = engine(Functions(embed=embed), concurrency=1)
    call = asyncio.create_task(made.embed(["x"]))
    await until(lambda: made.load().running == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert 1 == made.load().running
    go.set()
    await until(lambda: made.load().running == 0)
    assert 1 == len((await made.embed(["y"])).vectors)


async def test_closing_cancels_what_runs_and_gives_back_what_was_loaded() -> None:
    closed = threading.Event()
    made = engine(Functions(write=endless, close=closed.set), context_tokens=1 << 30)
    ticket = ask(made, "x")
    await until(lambda: bool(ticket.segments))
    await made.close()
    assert closed.is_set()
    assert pb.FINISH_CANCELLED == await ended(ticket)
    await until(lambda: made.load().running == 0)


async def test_loading_happens_on_a_thread_and_its_failure_is_the_adapters() -> None:
    def load(launch: Launch) -> Functions:
        assert threading.current_thread() is not threading.main_thread()
        raise RuntimeError("no weights")

    with pytest.raises(RuntimeError, match="no weights"):
        await FunctionAdapter(load).start(launched())
