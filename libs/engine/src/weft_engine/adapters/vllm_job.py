"""One request on its way through vLLM."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket

from weft_engine.adapters.called_functions import Unreadable
from weft_engine.adapters.vllm_native import Logprob, Made, NativeEngine
from weft_engine.adapters.vllm_parsed import ParsedAnswer, callable_in, told_apart, variables_of
from weft_engine.adapters.vllm_parsers import Parsers, StreamParser
from weft_engine.adapters.vllm_prompts import VllmPrompts
from weft_engine.adapters.vllm_sampling import grammar_for, sampling_of
from weft_engine.adapters.vllm_text import AnswerText, TokenBytes
from weft_engine.stop_strings import StopScanner

DIED: Final = "vLLM's engine process ended while it answered"
_FINISHES: Final = {"stop": pb.FINISH_STOP, "length": pb.FINISH_LENGTH, "abort": pb.FINISH_CANCELLED}

Token = int | tuple[int, pb.TokenScore]
"""An id, or an id with its score where the request asked for scores"""


class VllmJob:
    """A request that runs or waits in vLLM."""

    def __init__(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        self.ticket = ticket
        self.task: asyncio.Task[None] | None = None
        self._request = request
        self._prompt = prompt
        self._resumed = list(request.resume.output_ids)
        self._scored = request.HasField("scores")
        self._stops: StopScanner[Token] = StopScanner(request.stop, spare_json=request.constraint.or_text)
        self._held: list[Token] = []
        """ids whose text is not whole"""
        self._prompt_tokens = 0
        self._made = 0
        self._cached = 0
        self._parsed: ParsedAnswer | None = None

    async def run(
        self,
        engine: NativeEngine,
        prompts: VllmPrompts,
        bytes_of: TokenBytes,
        parsers: Parsers | None,
        context_tokens: int,
        number: int,
    ) -> None:
        """Run to the end, which the ticket hears of. Never raises but when cancelled."""
        try:
            variables = variables_of(self._request, prompts.variables)
            own = parsers if self._request.parsed else None
            functions = callable_in(self._request) if own is not None and own.finds_calls else []
            tools: list[dict[str, Any]] = []
            if functions and self._prompt.WhichOneof("prompt") == "chat" and prompts.shows_tools():
                chat, told = told_apart(self._prompt.chat, self._request.constraint)
                self._prompt, tools = pb.Prompt(chat=chat), told or functions
            prompt_ids = await prompts.ids(self._prompt, tools, variables)
            self._prompt_tokens = len(prompt_ids)
            ids = [*prompt_ids, *prompts.known(self._resumed, "what is resumed")]
            parser = None if own is None else own.open(tools or functions, variables)
            room = context_tokens - len(ids)
            if room < 1:
                sentence = f"the prompt has {len(ids)} tokens, the context holds {context_tokens} with the answer"
                raise RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, sentence)
            model = engine.model
            sampling = sampling_of(self._request, engine.own_sampling, room, model.get_vocab_size())
            thinks = parser is not None and parser.thinks_after(ids)
            if parser is None:
                text = AnswerText(engine.tokenizer, ids)
            else:
                text = AnswerText(engine.tokenizer, prompt_ids, marks=not parser.skip_special_tokens)
                self._replay(parser, prompt_ids, text, len(functions))
            grammar = "" if functions else grammar_for(self._request)

            def take(made: Made) -> bool:
                self._take(made, text, bytes_of)
                return self.ticket.ending is not None

            await engine.answer(ids, sampling, grammar, f"w{number}", take, thinks=thinks, variables=variables)
            self._fail(pb.FAULT_ENGINE, "vLLM ended the request without an end")
        except RequestRefused as refused:
            self._fail(refused.fault, refused.sentence, refused.field)
        except Unreadable as error:
            self._fail(pb.FAULT_ENGINE, f"the answer can't be told: {error}")
        except engine.faults.dead:
            self._fail(pb.FAULT_ENGINE, DIED)
        except engine.faults.client as error:
            self._fail(pb.FAULT_BAD_REQUEST, f"vLLM refused the request: {error}")
        except Exception as error:
            self._fail(pb.FAULT_ENGINE, f"vLLM failed: {error or type(error).__name__}")

    def cancel(self) -> None:
        """End at once; vLLM hears of it and drops the request before its next step."""
        self.ticket.finish(self._end(pb.FINISH_CANCELLED))
        if self.task is not None:
            self.task.cancel()

    def _replay(self, parser: StreamParser, prompt_ids: list[int], text: AnswerText, functions: int) -> None:
        """Bring the parser to where another replica's answer ended, which was told already."""
        most = max(1, self._request.constraint.most) if functions else 0
        self._parsed = ParsedAnswer(parser, prompt_ids, most)
        for token_id in self._resumed:
            said = self._parsed.feed(text.feed(token_id), [token_id], None)
            self._stops.feed((said.text, ()))

    def _take(self, made: Made, text: AnswerText, bytes_of: TokenBytes) -> None:
        """One step's part of the answer."""
        self._cached = made.cached_tokens
        if self._parsed is not None:
            self._take_parsed(made, text, bytes_of, self._parsed)
        else:
            self._take_text(made, text, bytes_of)
        finish = made.finish
        if self._stops.stopped:
            self.ticket.finish(self._end(pb.FINISH_STOP))
        elif finish in _FINISHES:
            self.ticket.finish(self._end(_FINISHES[finish]))
        elif finish is not None:
            self._fail(pb.FAULT_ENGINE, f"vLLM ended the request: {finish}")

    def _take_parsed(self, made: Made, text: AnswerText, bytes_of: TokenBytes, parsed: ParsedAnswer) -> None:
        """Thoughts, text and calls, told apart. An end token is none of the text."""
        finish, ids = made.finish, list(made.token_ids)
        self._made += len(ids)
        told = ids[:-1] if finish == "stop" else ids
        said = parsed.feed("".join([text.feed(each) for each in told]), ids, finish)
        if said.thought:
            self.ticket.think(said.thought)
        tokens: list[Token] = list(told)
        if self._scored:
            tokens = [(each, self._score(made, place, bytes_of)) for place, each in enumerate(told)]
        safe, given = self._stops.feed((said.text, tokens))
        if finish is not None and not self._stops.stopped:
            rest, held = self._stops.rest()
            safe, given = safe + rest, [*given, *held]
        self._emit(safe + ("" if self._stops.stopped else said.written), given)

    def _take_text(self, made: Made, text: AnswerText, bytes_of: TokenBytes) -> None:
        parts: list[str] = []
        tokens: list[Token] = []
        for place, token_id in enumerate(made.token_ids):
            self._made += 1
            piece = text.feed(token_id)
            self._held.append((token_id, self._score(made, place, bytes_of)) if self._scored else token_id)
            if piece:
                safe, ids = self._stops.feed((piece, tuple(self._held)))
                self._held.clear()
                parts.append(safe)
                tokens += ids
                if self._stops.stopped:
                    break
        if made.finish is not None and not self._stops.stopped:
            rest, ids = self._stops.rest()
            parts.append(rest)
            tokens += ids
        self._emit("".join(parts), tokens)

    def _emit(self, text: str, tokens: Sequence[Token]) -> None:
        if not text and not tokens:
            return
        if not self._scored:
            self.ticket.emit(text, cast("Sequence[int]", tokens))
            return
        pairs = cast("Sequence[tuple[int, pb.TokenScore]]", tokens)
        self.ticket.emit(text, [id for id, _ in pairs], [score for _, score in pairs])

    def _score(self, made: Made, place: int, bytes_of: TokenBytes) -> pb.TokenScore:
        token_id = made.token_ids[place]
        known: Mapping[int, Logprob] = made.logprobs[place] if made.logprobs else {}
        own = known.get(token_id)
        score = pb.TokenScore(id=token_id, token=bytes_of.of(token_id), logprob=own.logprob if own else 0.0)
        likeliest = sorted(known.items(), key=_rank)[: self._request.scores]
        for other, entry in likeliest:
            score.likeliest.add(id=other, token=bytes_of.of(other), logprob=entry.logprob)
        return score

    def _fail(self, fault: pb.Fault.ValueType, sentence: str, field: str = "") -> None:
        self.ticket.finish(self._end(pb.FINISH_ERROR, fault, sentence, field))

    def _end(
        self,
        finish: pb.Finish.ValueType,
        fault: pb.Fault.ValueType = pb.FAULT_UNSPECIFIED,
        error: str = "",
        field: str = "",
    ) -> Ending:
        cached = min(self._cached, self._prompt_tokens)
        return Ending(finish, self._prompt_tokens, self._made, cached, fault, error, field)


def _rank(entry: tuple[int, Any]) -> tuple[float, int]:
    return -entry[1].logprob, entry[0]
