"""A machine that waits for approval waits: on a whole mesh, whatever it and its surroundings go through."""

import asyncio
from pathlib import Path

import httpx
import pytest
from weft_contracts.ids import token_id
from weft_testing.bare_node import BareNode
from weft_testing.story import MeshUnderTest, until


@pytest.mark.slow
@pytest.mark.sabotage("rejoining-approves")
def test_no_silence_restart_token_name_or_id_stands_in_for_approval(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, WEFT_START_GRACE="2")
    mesh.up("--no-model")
    try:
        until("its own worker is healthy", lambda: state(mesh, "worker-1") == "healthy", 30)
        asyncio.run(tries_everything(mesh))
    finally:
        mesh.close()


async def tries_everything(mesh: MeshUnderTest) -> None:
    plain, another = token(mesh), token(mesh)
    async with httpx.AsyncClient(timeout=30.0) as http:
        # given one that waits, and one that is in
        one, guest = (BareNode(mesh.url, name, http) for name in ("one", "guest"))
        assert 202 == (await one.register(plain)).status_code
        assert 202 == (await guest.register(token(mesh, auto_approve=True))).status_code
        theirs = await guest.credential()

        async def waits(why: str) -> None:
            answer = await one.poll()
            assert (202, "pending") == (answer.status_code, state(mesh, "one")), f"{why}: {answer.text}"
            assert "jwt" not in answer.text

        await waits("at first")
        # another token, and the same again
        for secret in (another, plain):
            assert 202 == (await one.register(secret)).status_code
            await waits("it registered again")
        # a token that was made up, or revoked
        revoked = token(mesh, auto_approve=True)
        id = token_id(revoked)
        mesh.http.delete(f"{mesh.url}/api/tokens/{id}").raise_for_status()
        for secret in ("x" * 43, revoked):
            assert 401 == (await one.register(secret)).status_code
        await waits("its tokens were no good")
        # another name, the guest's name, the guest's id, the guest's key, the guest's credential
        assert 409 == (await renamed(one, "uno").register(plain)).status_code
        assert 409 == (await renamed(one, "guest").register(plain)).status_code
        assert 401 == (await one.poll(node=guest.id)).status_code
        addresses = {"host": "10.0.0.9", "http_port": 1}
        body = {"token": plain, "name": "guest", "public_key": guest.key.public, "addresses": addresses}
        assert 401 == (await one.send_registration(body)).status_code
        with pytest.raises(Exception, match=r"(?i)authorization|no servers"):
            await one.connect(theirs, allow_reconnect=False, max_reconnect_attempts=1)
        await waits("it took the guest's")
        # silence, and restarts of all that could forget
        await asyncio.sleep(9)
        await waits("it was silent")
        for part in ("registry", "gateway", "nats"):
            before = mesh.kill(part)
            until(f"{part} is back", lambda part=part, before=before: mesh.part(part)["pid"] not in (None, before), 30)
            until(
                "the mesh is ready", lambda: mesh.status()["log"]["connected"] and mesh.status()["gateway"]["ready"], 60
            )
            await waits(f"after a restart of {part}")
        # an admin's word, once
        assert 200 == mesh.http.post(f"{mesh.url}/api/nodes/one/approve").status_code
        assert 409 == mesh.http.post(f"{mesh.url}/api/nodes/one/approve").status_code
        client = await one.connect(await one.credential())
        async with asyncio.timeout(30):
            while state(mesh, "one") != "healthy":
                await one.lease(client)
                await asyncio.sleep(0.5)
        # and it holds when it comes again
        assert 202 == (await one.register(another)).status_code
        assert 200 == (await one.poll()).status_code
        await client.close()
    assert 1 == len([e for e in mesh.facts("node", "approved") if e["key"] == one.id])


def renamed(node: BareNode, name: str) -> BareNode:
    """The same key under another name."""
    other = BareNode(node.url, name, node.http)
    other.key, other.id = node.key, node.id
    return other


def state(mesh: MeshUnderTest, name: str) -> str:
    return str(next((node["state"] for node in mesh.status()["nodes"] if node["name"] == name), ""))


def token(mesh: MeshUnderTest, *, auto_approve: bool = False) -> str:
    made = mesh.http.post(f"{mesh.url}/api/tokens", json={"name": "any", "auto_approve": auto_approve})
    made.raise_for_status()
    return str(made.json()["secret"])
