"""A host that is one rank of a group: only its leader takes sessions, and only an engine that can is loaded so."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import LoadFailed, SessionRefused
from weft_engine.adapters import load_engine
from weft_engine.launch import Launch

from .engine_hosts import launch_fields

StartHost = Callable[..., AbstractAsyncContextManager[Any]]


async def test_a_follower_loads_is_ready_and_takes_no_session(start: StartHost) -> None:
    async with start(rank=1, ranks=3) as host:
        await host.phase("ready")
        with pytest.raises(SessionRefused, match="this is rank 1 of replica m-1, whose rank 0 answers") as refused:
            await host.open()
    assert pb.REFUSAL_REASON_WRONG_REPLICA == refused.value.reason


async def test_a_leader_answers(start: StartHost, ask: Callable[..., Any]) -> None:
    async with start(rank=0, ranks=3) as host:
        await host.phase("ready")
        client = await host.open()
        assert pb.FINISH_LENGTH == (await ask(client, "hello", max_tokens=5).end()).finish
        await client.close()


async def test_an_engine_that_runs_on_one_node_is_no_rank() -> None:
    launch = Launch.model_validate(launch_fields(engine="llama.cpp", rank=0, ranks=2))
    with pytest.raises(LoadFailed, match=r"llama.cpp runs on one node, and this is one of 2 ranks") as failed:
        await load_engine(launch)
    assert failed.value.permanent
