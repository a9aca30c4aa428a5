"""Packs what waits for a session into frames, none above the bound, in order, nothing lost."""

from collections.abc import Iterable, Iterator, Sequence

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.ticket import Ending, Scores, Segment

MAX_ERROR_CHARS = 4096
"""An error is one sentence; a longer one is cut."""

OUTPUT_OVERHEAD = 64
"""At least the bytes that an output takes beside its text and ids: tags, lengths, request, usage."""

FRAME_OVERHEAD = 64
"""The same for a frame: tags, lengths, load."""

RequestOutputs = tuple[int, Sequence[Segment], Ending | None, Sequence[str]]
"""A request's number, what it has to say in order, its end, if it came, and what its model thought before that."""


def text_bytes(text: str) -> int:
    """No fewer bytes than the text takes in UTF-8, without encoding it."""
    return len(text) if text.isascii() else 4 * len(text)


def score_bytes(scores: Scores) -> int:
    """No fewer bytes than the scores take in a frame."""
    return sum(score.ByteSize() + 6 for score in scores) if scores else 0


class Packer:
    """Fills steps one after another; a new one starts when the next piece might not fit."""

    def __init__(self, load: pb.Load, limit: int = MAX_FRAME_BYTES) -> None:
        self._load = load
        self._room_of_a_frame = limit - FRAME_OVERHEAD - load.ByteSize()
        self._room = 0
        self._step: pb.Step | None = None
        self._frames: list[pb.EngineFrame] = []

    def add(
        self, number: int, segments: Sequence[Segment], ending: Ending | None, thoughts: Sequence[str] = ()
    ) -> None:
        """Add one request's outputs, merged as far as the bound allows."""
        if thoughts:
            self._think(number, "".join(thoughts))
        pieces = list(self._pieces(segments))
        last = len(pieces) - 1
        for i, (size, text, ids, scores) in enumerate(pieces):
            if i == last and ending is not None:
                self._end(number, size, (text, ids, scores), ending)
            else:
                output = self._place(size).outputs.add(request=number, text=text, token_ids=ids)
                if scores:
                    output.scores.extend(scores)
        if not pieces and ending is not None:
            self._end(number, OUTPUT_OVERHEAD, ("", (), ()), ending)

    def answer(self, answer: pb.Answer) -> None:
        """Add the answer to a unary call."""
        self._place(answer.ByteSize() + OUTPUT_OVERHEAD).answers.append(answer)

    def frames(self) -> list[pb.EngineFrame]:
        """All frames, at least one; the load is in each."""
        if self._step is None:
            self._place(0)
        return self._frames

    def _think(self, number: int, text: str) -> None:
        chars = max(1, (self._room_of_a_frame - OUTPUT_OVERHEAD) // 4)
        for start in range(0, len(text), chars):
            piece = text[start : start + chars]
            self._place(OUTPUT_OVERHEAD + text_bytes(piece)).outputs.add(request=number, reasoning=piece)

    def _end(self, number: int, size: int, segment: Segment, ending: Ending) -> None:
        text, ids, scores = segment
        error = ending.error[:MAX_ERROR_CHARS]
        size += text_bytes(error)
        if size > self._room_of_a_frame:
            self._place(size).outputs.add(request=number, text=text, token_ids=ids, scores=scores)
            text, ids, scores, size = "", (), (), OUTPUT_OVERHEAD + text_bytes(error)
        output = self._place(size).outputs.add(
            request=number,
            text=text,
            token_ids=ids,
            scores=scores,
            finish=ending.finish,
            fault=ending.fault,
            error=error,
            field=ending.field,
        )
        usage = output.usage
        usage.prompt_tokens = ending.prompt_tokens
        usage.output_tokens = ending.output_tokens
        usage.cached_tokens = ending.cached_tokens

    def _place(self, size: int) -> pb.Step:
        """The step that has room for `size` more bytes."""
        step = self._step
        if step is None or size > self._room:
            frame = pb.EngineFrame()
            step = self._step = frame.step
            step.load.CopyFrom(self._load)
            self._frames.append(frame)
            self._room = self._room_of_a_frame
        self._room -= size
        return step

    def _pieces(self, segments: Sequence[Segment]) -> Iterator[tuple[int, str, Sequence[int], Scores]]:
        """Merge neighbouring segments while they fit one frame; cut one that never would."""
        if len(segments) == 1:
            text, ids, scores = segments[0]
            size = OUTPUT_OVERHEAD + text_bytes(text) + 5 * len(ids)
            if scores:
                size += score_bytes(scores)
            if size <= self._room_of_a_frame:
                yield size, text, ids, scores
                return
        texts: list[str] = []
        merged: list[int] = []
        scored: list[pb.TokenScore] = []
        total = OUTPUT_OVERHEAD
        for text, ids, scores in self._cut(segments):
            size = text_bytes(text) + 5 * len(ids) + score_bytes(scores)
            if total + size > self._room_of_a_frame and (texts or merged):
                yield total, "".join(texts), merged, scored
                texts, merged, scored, total = [], [], [], OUTPUT_OVERHEAD
            texts.append(text)
            merged.extend(ids)
            scored.extend(scores)
            total += size
        if texts:
            yield total, "".join(texts), merged, scored

    def _cut(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Segments that each fit a frame. One that doesn't gives its ids and scores after its text."""
        room = self._room_of_a_frame - OUTPUT_OVERHEAD
        chars, count = max(1, room // 4), max(1, room // 5)
        for text, ids, scores in segments:
            if text_bytes(text) + 5 * len(ids) + score_bytes(scores) <= room:
                yield text, ids, scores
                continue
            for start in range(0, len(text), chars):
                yield text[start : start + chars], (), ()
            for start in range(0, len(ids), count):
                yield "", ids[start : start + count], ()
            for score in scores:
                yield "", (), (score,)


def pack(
    pending: Iterable[RequestOutputs],
    answers: Iterable[pb.Answer],
    load: pb.Load,
    limit: int = MAX_FRAME_BYTES,
) -> list[pb.EngineFrame]:
    """Pack outputs and answers into frames of at most `limit` bytes each, in order.

    A request's texts and ids come out concatenated as they went in, its end once and last; text and its ids
    share an output unless they alone exceed a frame.
    """
    packer = Packer(load, limit)
    for number, segments, ending, thoughts in pending:
        packer.add(number, segments, ending, thoughts)
    for answer in answers:
        packer.answer(answer)
    return packer.frames()
