"""One request on its way through vLLM."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket

from weft_engine.adapters.vllm_native import Completion, Logprob, NativeEngine, RequestOutput
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

    async def run(
        self, engine: NativeEngine, prompts: VllmPrompts, bytes_of: TokenBytes, context_tokens: int, number: int
    ) -> None:
        """Run to the end, which the ticket hears of. Never raises but when cancelled."""
        try:
            ids = await prompts.ids(self._prompt)
            self._prompt_tokens = len(ids)
            ids = [*ids, *prompts.known(self._resumed, "what is resumed")]
            room = context_tokens - len(ids)
            if room < 1:
                sentence = f"the prompt has {len(ids)} tokens, the context holds {context_tokens} with the answer"
                raise RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, sentence)
            model = engine.model
            sampling = sampling_of(self._request, model.get_diff_sampling_param(), room, model.get_vocab_size())
            text = AnswerText(engine.tokenizer, ids)
            async with aclosing(engine.generate(ids, sampling, grammar_for(self._request), f"w{number}")) as outputs:
                async for output in outputs:
                    self._take(output, text, bytes_of)
                    if self.ticket.ending is not None:
                        return
            self._fail(pb.FAULT_ENGINE, "vLLM ended the request without an end")
        except RequestRefused as refused:
            self._fail(refused.fault, refused.sentence, refused.field)
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

    def _take(self, output: RequestOutput, text: AnswerText, bytes_of: TokenBytes) -> None:
        """One step's part of the answer."""
        self._cached = output.num_cached_tokens or 0
        completion = output.outputs[0]
        parts: list[str] = []
        tokens: list[Token] = []
        for place, token_id in enumerate(completion.token_ids):
            self._made += 1
            piece = text.feed(token_id)
            self._held.append((token_id, self._score(completion, place, bytes_of)) if self._scored else token_id)
            if piece:
                safe, ids = self._stops.feed((piece, tuple(self._held)))
                self._held.clear()
                parts.append(safe)
                tokens += ids
                if self._stops.stopped:
                    break
        finish = completion.finish_reason
        if finish is not None and not self._stops.stopped:
            rest, ids = self._stops.rest()
            parts.append(rest)
            tokens += ids
        self._emit("".join(parts), tokens)
        if self._stops.stopped:
            self.ticket.finish(self._end(pb.FINISH_STOP))
        elif finish in _FINISHES:
            self.ticket.finish(self._end(_FINISHES[finish]))
        elif finish is not None:
            self._fail(pb.FAULT_ENGINE, f"vLLM ended the request: {finish}")

    def _emit(self, text: str, tokens: Sequence[Token]) -> None:
        if not text and not tokens:
            return
        if not self._scored:
            self.ticket.emit(text, cast("Sequence[int]", tokens))
            return
        pairs = cast("Sequence[tuple[int, pb.TokenScore]]", tokens)
        self.ticket.emit(text, [id for id, _ in pairs], [score for _, score in pairs])

    def _score(self, completion: Completion, place: int, bytes_of: TokenBytes) -> pb.TokenScore:
        token_id = completion.token_ids[place]
        known: Mapping[int, Logprob] = completion.logprobs[place] if completion.logprobs else {}
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
