"""Embeddings over a session: any number and size of inputs, small frames, answers that nobody waits for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import EmbedInput, RequestRefused, SessionClient, UnaryCallFailed, packed, unpacked
from weft_dataplane.embeddings import MAX_INPUTS, embed_message, embeddings_of, groups
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.scripted import Host, served

INPUTS = st.lists(st.one_of(st.text(max_size=30), st.lists(st.integers(0, 2**32 - 1), max_size=30)), max_size=200)


@pytest.fixture
async def host() -> AsyncGenerator[Host, None]:
    async with served() as host:
        yield host


@pytest.fixture
async def client(host: Host) -> AsyncGenerator[SessionClient, None]:
    client = await host.open()
    yield client
    await client.close()


@given(INPUTS, st.lists(st.integers(1, 300_000), max_size=4))
def test_groups_keep_every_input_in_order_and_fit_their_frames(inputs: list[EmbedInput], large: list[int]) -> None:
    asked = [*inputs, *("é" * size for size in large)]

    made = list(groups(asked))

    assert asked == [each for group in made for each in group.inputs]
    for group in made:
        assert 1 <= len(group.inputs) <= MAX_INPUTS
        if group.frame:
            assert embed_message(2**63, group.inputs).ByteSize() < MAX_FRAME_BYTES
        else:
            assert 1 == len(group.inputs)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1))
def test_packed_vectors_come_back_as_they_were(values: list[float]) -> None:
    assert values == list(unpacked(packed(values)))
    assert packed(values) == embeddings_of(pb.Vectors(vectors=[pb.Vector(values=values)])).vectors[0]


async def test_small_vectors_come_with_the_answer_and_large_ones_beside_the_stream(
    client: SessionClient, host: Host
) -> None:
    for dimensions in (8, 100_000):
        host.engine.dimensions = dimensions
        made = await client.unary.embed(["a", [7, 8, 9]])
        assert [[1.0] * dimensions, [3.0] * dimensions] == [list(unpacked(vector)) for vector in made.vectors]
        assert 4 == made.prompt_tokens


async def test_many_inputs_and_one_larger_than_a_frame_are_answered_in_order(client: SessionClient, host: Host) -> None:
    host.engine.dimensions = 4
    lengths = [*range(1, 200), 600_000, 3]

    made = await client.unary.embed(["x" * length for length in lengths])

    assert [float(length) for length in lengths] == [unpacked(vector)[0] for vector in made.vectors]
    assert sum(lengths) == made.prompt_tokens


async def test_an_empty_input_is_refused_with_its_place(client: SessionClient) -> None:
    with pytest.raises(UnaryCallFailed, match="input 1 is empty") as refused:
        await client.unary.embed(["a", ""])
    assert pb.FAULT_BAD_REQUEST == refused.value.fault


async def test_a_refusal_bears_its_fault(client: SessionClient, host: Host) -> None:
    host.engine.refuse = RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, "too long")
    with pytest.raises(UnaryCallFailed, match="too long") as refused:
        await client.unary.embed(["a"])
    assert pb.FAULT_CONTEXT_EXCEEDED == refused.value.fault


async def test_a_retiring_replica_finishes_a_call_and_takes_no_new_one(client: SessionClient, host: Host) -> None:
    host.engine.may_embed.clear()
    asked = asyncio.create_task(client.unary.embed(["a"]))
    await until_embedding(host)
    host.servicer.life.retire()

    with pytest.raises(UnaryCallFailed, match="retiring") as refused:
        await client.unary.embed(["b"])
    assert pb.FAULT_RETIRING == refused.value.fault
    assert 1 == host.servicer.running
    host.engine.may_embed.set()
    assert 1 == len((await asked).vectors)
    async with asyncio.timeout(30):
        while host.servicer.running:
            await asyncio.sleep(0.01)


async def test_a_call_that_nobody_waits_for_is_withdrawn_at_the_engine(client: SessionClient, host: Host) -> None:
    host.engine.may_embed.clear()
    asked = asyncio.create_task(client.unary.embed(["a"]))
    await until_embedding(host)

    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked

    async with asyncio.timeout(30):
        while host.servicer.running:
            await asyncio.sleep(0.01)


async def until_embedding(host: Host) -> None:
    async with asyncio.timeout(30):
        while not host.engine.embedding:
            await asyncio.sleep(0.01)
