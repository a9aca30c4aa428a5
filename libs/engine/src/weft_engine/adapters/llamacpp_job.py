"""One request on its way through llama.cpp, as the thread that runs it sees it."""

import json
from collections.abc import Callable, Sequence
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket

from weft_engine.adapters.llamacpp_chorus import Voice
from weft_engine.adapters.llamacpp_chunks import ErrorChunk, FinalChunk, ProgressChunk, read_chunk
from weft_engine.adapters.llamacpp_native import NativeServer
from weft_engine.adapters.llamacpp_text import LlamaCppText
from weft_engine.stop_strings import StopScanner

MAX_INT32: Final = 2**31 - 1
RANDOM_SEED: Final = 0xFFFFFFFF
"""llama.cpp draws a seed for this one"""

Post = Callable[["Job", str, Sequence[int]], None]


class Job:
    """Runs one completion. Everything but `cancel` and `voice` belongs to the running thread."""

    def __init__(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        self.request = request
        self.prompt = prompt
        self.ticket = ticket
        self.cancelled = False
        self.voice = Voice()
        self.prompt_tokens = 0
        self.made = 0
        """tokens made here"""
        self._cached = 0
        self._resumed = list(request.resume.output_ids)
        self._stops = StopScanner(request.stop)
        self._held: list[int] = []
        self._ending: Ending | None = None

    def cancel(self) -> None:
        """End at the next chunk; called by anyone."""
        self.cancelled = True
        self.voice.let_in()

    def run(self, server: NativeServer, text: LlamaCppText, post: Post) -> Ending:
        """Run to the end; outputs go to `post`, the end is answered. Never raises."""
        try:
            if not self.cancelled:
                server.complete(self._completion(text.prompt(self.prompt, self._resumed)), self._listener(text, post))
        except RequestRefused as refused:
            self._fail(refused.fault, refused.sentence)
        except Exception as error:
            self._fail(pb.FAULT_ENGINE, f"llama.cpp failed: {error}")
        if self._ending is not None:
            return self._ending
        if self.cancelled:
            return self._end(pb.FINISH_CANCELLED)
        return self._end(pb.FINISH_ERROR, pb.FAULT_ENGINE, "llama.cpp ended the request without a word")

    def _listener(self, text: LlamaCppText, post: Post) -> Callable[[str], bool]:
        """The callback for chunks: answers whether to stop."""
        stops, held = self._stops, self._held

        def listen(chunk: str) -> bool:
            if self.cancelled:
                return True
            try:
                read = read_chunk(chunk)
                if isinstance(read, ProgressChunk):
                    self.prompt_tokens, self._cached = read
                    return False
                if isinstance(read, FinalChunk):
                    self.prompt_tokens, self.made, self._cached = read[1:]
                    rest, ids = stops.rest()
                    if rest:
                        post(self, rest, ids)
                    self._ending = self._end(read.finish)
                    return False
                if isinstance(read, ErrorChunk):
                    self._fail(*read)
                    return True
                piece, token_id, made, self.prompt_tokens = read
                missing = made - self.made - 1
                self.made = made
                if not piece:  # a token without text: an end token, or one that only marks
                    held.append(token_id)
                    return False
                ids = (token_id,) if not missing else text.ids_of_one_text(piece, missing + 1, token_id)
                if held:
                    ids = (*held, *ids)
                    held.clear()
                safe, safe_ids = stops.feed((piece, ids))
                if safe:
                    post(self, safe, safe_ids)
                if stops.stopped:
                    self._ending = self._end(pb.FINISH_STOP)
                    return True
                return False
            except Exception as error:  # raised into native code it would be swallowed
                self._fail(pb.FAULT_ENGINE, f"a chunk of llama.cpp could not be taken: {error}")
                return True

        return listen

    def _completion(self, prompt: str | list[int]) -> str:
        """llama.cpp's request. Stop strings are ours, so that text held at the end is never lost."""
        sampling = self.request.sampling
        fields: dict[str, object] = {
            "prompt": prompt,
            "stream": True,
            "return_tokens": True,
            "return_progress": True,
            "verbose": True,  # ids and counts come this way, at no cost in sampling
            "response_fields": ["stop_type"],  # the last chunk would repeat the prompt
            "max_tokens": min(self.request.max_tokens, MAX_INT32) or -1,
        }
        if sampling.HasField("temperature"):
            fields["temperature"] = sampling.temperature
        if sampling.HasField("top_p"):
            fields["top_p"] = sampling.top_p
        if sampling.HasField("top_k"):
            fields["top_k"] = min(sampling.top_k, MAX_INT32)
        if sampling.HasField("min_p"):
            fields["min_p"] = sampling.min_p
        if sampling.HasField("seed"):
            fields["seed"] = sampling.seed % RANDOM_SEED
        if sampling.HasField("presence_penalty"):
            fields["presence_penalty"] = sampling.presence_penalty
        if sampling.HasField("frequency_penalty"):
            fields["frequency_penalty"] = sampling.frequency_penalty
        if sampling.ignore_end:
            fields["ignore_eos"] = True
        return json.dumps(fields)

    def _fail(self, fault: pb.Fault.ValueType, sentence: str) -> None:
        self._ending = self._end(pb.FINISH_ERROR, fault, sentence)

    def _end(
        self,
        finish: pb.Finish.ValueType,
        fault: pb.Fault.ValueType = pb.FAULT_UNSPECIFIED,
        error: str = "",
    ) -> Ending:
        prompt_tokens = max(0, self.prompt_tokens - len(self._resumed))
        return Ending(finish, prompt_tokens, self.made, min(self._cached, prompt_tokens), fault, error)
