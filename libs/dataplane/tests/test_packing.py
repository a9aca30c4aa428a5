"""Splitting and merging outputs into frames."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.packing import pack
from weft_dataplane.ticket import Ending, Segment

LOAD = pb.Load(running=3, waiting=1, kv_used=0.5, steps=2**40)

scores = st.builds(
    pb.TokenScore,
    id=st.integers(0, 2**32 - 1),
    token=st.binary(max_size=8),
    logprob=st.just(-0.5),
    likeliest=st.lists(st.builds(pb.TokenScore, id=st.just(3), token=st.just(b"abc")), max_size=5),
)
segments = st.lists(
    st.tuples(
        st.text(max_size=200),
        st.lists(st.integers(0, 2**32 - 1), max_size=30),
        st.one_of(st.just([]), st.lists(scores, max_size=6)),
    ),
    max_size=12,
)
endings = st.one_of(
    st.none(),
    st.builds(
        Ending,
        finish=st.sampled_from([pb.FINISH_STOP, pb.FINISH_ERROR]),
        prompt_tokens=st.integers(0, 2**31),
        output_tokens=st.integers(0, 2**31),
        cached_tokens=st.just(0),
        fault=st.sampled_from([pb.FAULT_UNSPECIFIED, pb.FAULT_ENGINE]),
        error=st.text(max_size=300),
    ),
)
thoughts = st.lists(st.text(max_size=2000), max_size=3)
requests = st.lists(st.tuples(segments, endings, thoughts), max_size=8)


def outputs_of(frames: list[pb.EngineFrame]) -> dict[int, list[pb.Output]]:
    found: dict[int, list[pb.Output]] = {}
    for frame in frames:
        for output in frame.step.outputs:
            found.setdefault(output.request, []).append(output)
    return found


@given(requests, st.integers(600, 5000))
def test_packing_keeps_every_text_id_and_end_in_order_and_no_frame_exceeds_the_bound(
    requests: list[tuple[list[Segment], Ending | None, list[str]]], limit: int
) -> None:
    limit += 4 * 300  # an error is one piece
    pending = [(i + 1, segments, ending, thoughts) for i, (segments, ending, thoughts) in enumerate(requests)]

    frames = pack(pending, [], LOAD, limit)

    assert all(frame.ByteSize() <= limit for frame in frames)
    found = outputs_of(frames)
    for number, segments, ending, thoughts in pending:
        outputs = found.get(number, [])
        assert "".join(thoughts) == "".join(o.reasoning for o in outputs)
        assert [bool(o.reasoning) for o in outputs] == sorted((bool(o.reasoning) for o in outputs), reverse=True)
        assert "".join(t for t, _, _ in segments) == "".join(o.text for o in outputs)
        assert [i for _, ids, _ in segments for i in ids] == [i for o in outputs for i in o.token_ids]
        assert [s for _, _, scores in segments for s in scores] == [s for o in outputs for s in o.scores]
        finishes = [o for o in outputs if o.finish]
        if ending is None:
            assert finishes == []
        else:
            assert outputs[-1:] == finishes
            assert (ending.finish, ending.error, ending.output_tokens) == (
                finishes[0].finish,
                finishes[0].error,
                finishes[0].usage.output_tokens,
            )


@given(st.lists(st.tuples(st.text(max_size=40), st.lists(st.integers(0, 99), max_size=4), st.just(())), min_size=1))
def test_an_output_holds_exactly_the_ids_that_make_its_text_unless_one_token_exceeds_a_frame(
    segments: list[Segment],
) -> None:
    frames = pack([(1, segments, None, ())], [], LOAD, 400)

    ends: list[tuple[int, int]] = [(0, 0)]
    for text, ids, _ in segments:
        ends.append((ends[-1][0] + len(text), ends[-1][1] + len(ids)))
    chars = ids_seen = 0
    for output in outputs_of(frames)[1]:
        chars += len(output.text)
        ids_seen += len(output.token_ids)
        assert (chars, ids_seen) in ends


def test_a_step_of_all_requests_is_one_frame() -> None:
    pending = [(i, [(" token", [i], ())], None, ()) for i in range(1, 1001)]

    frames = pack(pending, [], LOAD)

    assert len(frames) == 1
    assert len(frames[0].step.outputs) == 1000
    assert frames[0].step.load == LOAD


def test_a_frame_without_outputs_still_carries_the_load() -> None:
    assert [pb.EngineFrame(step=pb.Step(load=LOAD))] == pack([], [], LOAD)


def test_a_text_of_a_megabyte_is_cut_at_characters_and_arrives_whole() -> None:
    text = "é€😀a" * 300_000

    frames = pack([(1, [(text, [5], ())], Ending(pb.FINISH_STOP), ())], [], LOAD)

    assert all(frame.ByteSize() <= MAX_FRAME_BYTES for frame in frames)
    outputs = outputs_of(frames)[1]
    assert text == "".join(o.text for o in outputs)
    assert [i for o in outputs for i in o.token_ids] == [5]
    assert outputs[-1].finish == pb.FINISH_STOP


def test_answers_are_packed_beside_outputs_within_the_bound() -> None:
    answers = [pb.Answer(question=i, error="e" * 900) for i in range(1000)]

    frames = pack([(1, [("a", [1], ())], None, ())], answers, LOAD)

    assert all(frame.ByteSize() <= MAX_FRAME_BYTES for frame in frames)
    assert answers == [answer for frame in frames for answer in frame.step.answers]
