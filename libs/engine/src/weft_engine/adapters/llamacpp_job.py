"""One request on its way through llama.cpp, as the thread that runs it sees it."""

import json
from collections.abc import Callable, Sequence
from typing import Final, cast

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket
from weft_dataplane.ticket import Scores

from weft_engine.adapters.llamacpp_chunks import ErrorChunk, FinalChunk, ProgressChunk, read_chunk
from weft_engine.adapters.llamacpp_completion_thread import CompletionThread
from weft_engine.adapters.llamacpp_native import NativeServer
from weft_engine.adapters.llamacpp_tokenizer import LlamaCppTokenizer
from weft_engine.guided_grammar import GrammarMatcher, is_guided
from weft_engine.json_grammar import grammar_of
from weft_engine.json_schema import SchemaRefused
from weft_engine.stop_strings import StopScanner

MAX_INT32: Final = 2**31 - 1
RANDOM_SEED: Final = 0xFFFFFFFF
"""llama.cpp draws a seed for this one"""
_LEFT: Final = "llama.cpp's answer left the JSON schema that it was held to"

Post = Callable[["Job", str, Sequence[int], Scores, int, bool], None]
"""Takes text with its ids and scores, how many tokens llama.cpp made for it, and whether the end follows at once.

It is called for each token, though some have no text of their own; it returns when the next one is worth asking for.
"""
Token = int | tuple[int, pb.TokenScore | None]
"""An id, or an id with its score where the request asked for scores"""


class Job:
    """Runs one completion. Everything but `cancel` and `thread` belongs to the running thread."""

    def __init__(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        self.request = request
        self.prompt = prompt
        self.ticket = ticket
        self.cancelled = False
        self.thread = CompletionThread()
        self.prompt_tokens = 0
        self.made = 0
        """tokens made here"""
        self._cached = 0
        self._resumed = list(request.resume.output_ids)
        self._scored = request.HasField("scores")
        self._stops: StopScanner[Token] = StopScanner(request.stop, spare_json=request.constraint.or_text)
        self._held: list[Token] = []
        self._ending: Ending | None = None
        self._matcher: GrammarMatcher | None = None

    def cancel(self) -> None:
        """End at the next chunk; called by anyone."""
        self.cancelled = True
        self.thread.let_in()

    def run(self, server: NativeServer, tokenizer: LlamaCppTokenizer, post: Post) -> Ending:
        """Run to the end; outputs go to `post`, the end is answered. Never raises."""
        try:
            if not self.cancelled:
                asked = self._completion(tokenizer.prompt(self.prompt, self._resumed), tokenizer)
                server.complete(asked, self._listener(tokenizer, post))
        except RequestRefused as refused:
            self._fail(refused.fault, refused.sentence, refused.field)
        except Exception as error:
            self._fail(pb.FAULT_ENGINE, f"llama.cpp failed: {error}")
        if self._ending is not None:
            return self._ending
        if self.cancelled:
            return self._end(pb.FINISH_CANCELLED)
        return self._end(pb.FINISH_ERROR, pb.FAULT_ENGINE, "llama.cpp ended the request without a word")

    def _listener(self, tokenizer: LlamaCppTokenizer, post: Post) -> Callable[[str], bool]:
        """The callback for chunks: answers whether to stop."""
        stops, held, scored = self._stops, self._held, self._scored
        most = self.request.max_tokens or MAX_INT32

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
                    if self._matcher is not None and read.finish == pb.FINISH_STOP and not self._matcher.whole:
                        self._fail(pb.FAULT_ENGINE, _LEFT)
                        return False
                    rest, tokens = stops.rest()
                    if rest:
                        self._post(post, rest, tokens, 0, ends=True)
                    self._ending = self._end(read.finish)
                    return False
                if isinstance(read, ErrorChunk):
                    self._fail(*read)
                    return True
                piece, token_id, made, self.prompt_tokens, score = read
                missing = made - self.made - 1
                self.made = made
                ends = made >= most
                if not piece:  # a token without text: an end token, or one that only marks
                    held.append((token_id, score) if scored else token_id)
                    post(self, "", (), (), missing + 1, ends)
                    return self.cancelled
                if self._matcher is not None and not self._matcher.takes(piece):
                    self._fail(pb.FAULT_ENGINE, _LEFT)
                    return True
                tokens: Sequence[Token]
                tokens = (token_id,) if not missing else tokenizer.ids_of_one_text(piece, missing + 1, token_id)
                if scored:
                    tokens = self._with_score(piece, tokens, score)
                if held:
                    tokens = (*held, *tokens)
                    held.clear()
                safe, tokens = stops.feed((piece, tokens))
                self._post(post, safe, tokens, missing + 1, ends=ends or stops.stopped)
                if stops.stopped:
                    self._ending = self._end(pb.FINISH_STOP)
                    return True
                return self.cancelled
            except Exception as error:  # raised into native code it would be swallowed
                self._fail(pb.FAULT_ENGINE, f"a chunk of llama.cpp could not be taken: {error}")
                return True

        return listen

    def _post(self, post: Post, text: str, tokens: Sequence[Token], made: int, *, ends: bool) -> None:
        if not self._scored:
            post(self, text, cast(Sequence[int], tokens), (), made, ends)
            return
        pairs = cast(Sequence[tuple[int, pb.TokenScore | None]], tokens)
        scores = [score for _, score in pairs if score is not None]
        post(self, text, [id for id, _ in pairs], scores, made, ends)

    def _with_score(self, piece: str, ids: Sequence[Token], score: pb.TokenScore | None) -> Sequence[Token]:
        """A piece's tokens with the one score that llama.cpp tells: the last token's.

        A character of several tokens so has one entry, which stands for all of it.
        """
        if score is not None:
            if len(ids) > 1:
                score.token = piece.encode()
            del score.likeliest[self.request.scores :]
        *others, last = cast(Sequence[int], ids)
        return [*((id, None) for id in others), (last, score)]

    def _completion(self, prompt: str | list[int], tokenizer: LlamaCppTokenizer) -> str:
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
        if sampling.presence_penalty or sampling.frequency_penalty:
            fields["presence_penalty"] = sampling.presence_penalty
            fields["frequency_penalty"] = sampling.frequency_penalty
            fields["repeat_last_n"] = tokenizer.context_tokens  # the whole text counts, not llama.cpp's last 64 tokens
        if sampling.ignore_end:
            fields["ignore_eos"] = True
        if self.request.bias:
            fields["logit_bias"] = [[bias.id, bias.value] for bias in self.request.bias]
        if self._scored:
            fields["n_probs"] = max(1, self.request.scores)
        if self.request.HasField("constraint"):
            fields["grammar"] = grammar = self._grammar()
            self._matcher = GrammarMatcher(grammar) if is_guided(grammar) else None
        return json.dumps(fields)

    def _grammar(self) -> str:
        asked = self.request.constraint
        try:
            return grammar_of(asked.json_schema, or_text=asked.or_text, most=max(1, asked.most), or_json=asked.or_json)
        except SchemaRefused as refused:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, str(refused), "constraint") from None

    def _fail(self, fault: pb.Fault.ValueType, sentence: str, field: str = "") -> None:
        self._ending = self._end(pb.FINISH_ERROR, fault, sentence, field)

    def _end(
        self,
        finish: pb.Finish.ValueType,
        fault: pb.Fault.ValueType = pb.FAULT_UNSPECIFIED,
        error: str = "",
        field: str = "",
    ) -> Ending:
        prompt_tokens = max(0, self.prompt_tokens - len(self._resumed))
        return Ending(finish, prompt_tokens, self.made, min(self._cached, prompt_tokens), fault, error, field)
