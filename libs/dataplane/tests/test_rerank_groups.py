"""Texts to rerank: groups that fit a frame, in order, and what fits none is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import UnaryCallFailed
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.rerank_groups import rerank_groups


@given(st.text(max_size=50), st.lists(st.integers(1, 90_000), max_size=200))
def test_groups_keep_the_order_and_each_fits_a_frame(query: str, lengths: list[int]) -> None:
    texts = [str(place % 10) * length for place, length in enumerate(lengths)]
    groups = list(rerank_groups(query, texts))
    assert texts == [text for group in groups for text in group]
    for group in groups:
        assert 0 < len(group) <= 64
        frame = pb.ClientFrame(rerank=pb.Rerank(question=1 << 40, query=query, texts=group))
        assert frame.ByteSize() <= MAX_FRAME_BYTES


def test_a_text_that_fits_no_frame_is_refused_before_any_is_sent() -> None:
    with pytest.raises(UnaryCallFailed, match="query and text 1 take more than") as refused:
        next(rerank_groups("q", ["a", "€" * 100_000]))
    assert pb.FAULT_CONTEXT_EXCEEDED == refused.value.fault
