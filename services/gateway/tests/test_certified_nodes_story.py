"""Nodes and their certificates as a real gateway sees them: what a machine asks for, and when nobody speaks to it."""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from weft_contracts import certificates
from weft_contracts.facts.node import Removed
from weft_contracts.facts.request import JoinRequested
from weft_contracts.facts.token import Created
from weft_contracts.ids import token_hash, token_id
from weft_contracts.subjects import kind_filter, node, token
from weft_identity.authority import new_key, public_der
from weft_identity.nkey import KeyPair, Role

World = Any
KEY = KeyPair.new(Role.USER)


def asked(key: str) -> tuple[bytes, dict[str, str]]:
    """What a machine sends that asks certificates for a key, and the headers by which it signs that."""
    body = {
        "token": f"secret.{certificates.authority_digest(b'')}",
        "name": "one",
        "public_key": KEY.public,
        "addresses": {"host": "127.0.0.1", "http_port": 1},
        "certificate_key": key,
    }
    content, nonce = json.dumps(body).encode(), str(int(time.time()))
    signature = KEY.sign(f"weft-register:{nonce}:{hashlib.sha256(content).hexdigest()}".encode())
    return content, {"weft-nonce": nonce, "weft-signature": base64.b64encode(signature).decode()}


async def rest(pieces: AsyncIterator[Any]) -> int:
    """How many pieces still come."""
    return len([piece async for piece in pieces])


async def test_a_machine_asks_certificates_for_a_key_by_the_whole_token_and_that_stands_in_the_log(
    world: World,
) -> None:
    await world.tell(token(token_id("secret")), Created(hash=token_hash("secret"), approves=True))
    await world.a_gateway(WEFT_OUTCOME_WAIT_S="0.2")
    key = base64.b64encode(public_der(new_key())).decode()
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:

        async def answer(key: str) -> tuple[int, str]:
            content, headers = asked(key)
            headers["content-type"] = "application/json"
            said = await client.post("/api/node/register", content=content, headers=headers)
            return said.status_code, said.json().get("detail", "")

        status, why = await answer("AAAA")
        assert 400 == status
        assert "curve P-256" in why
        assert 504 == (await answer(key))[0]  # no registry is there to answer

    facts = [fact async for commit in world.log.read(kind_filter("request")) for fact in commit.facts]
    assert [key] == [fact.certificate_key for fact in facts if isinstance(fact, JoinRequested)]


async def test_a_stream_from_a_removed_node_is_cut_though_the_node_answers_on(world: World) -> None:
    # given a stream that would run for half a minute
    id = await world.a_node()
    await world.a_model()
    replica = await world.a_ready_replica(1, ms_per_token=50)
    await world.a_gateway(WEFT_RESUME_WAIT_S="0", WEFT_LOADING_WAIT_S="1")
    async with openai.AsyncOpenAI(base_url=f"{world.url}/v1", api_key="none", max_retries=0) as typed:
        client: Any = typed
        stream = await client.chat.completions.create(
            model="sim",
            messages=[{"role": "user", "content": "Count"}],
            max_tokens=600,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        pieces = aiter(stream)
        await anext(pieces)
        # when its node is removed
        await world.tell(node(id), Removed(why="stolen"))
        # then the stream ends with a word, and nothing new goes there
        with pytest.raises(openai.APIError):
            await asyncio.wait_for(rest(pieces), 30)
        assert world.hosts[replica].process.returncode is None
        with pytest.raises(openai.APIStatusError):
            await client.chat.completions.create(model="sim", messages=[{"role": "user", "content": "?"}], timeout=90)
