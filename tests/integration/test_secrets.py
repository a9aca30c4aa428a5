"""A secret that an engine's arguments name: it reaches that engine alone, is rotated as it runs, and lies nowhere."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_identity.nkey import KeyPair
from weft_testing.engine_environment import engine_environment
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

KEYED = Path(__file__).parents[1] / "packages" / "keyed" / "weft_keyed"
SPEC = {"source": {"kind": "simulated"}, "engine": "keyed", "context_tokens": 64}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """Two workers that have an engine with a key, which the mesh was told of."""
    folder = tmp_path_factory.mktemp("secrets")
    backends = engine_environment(folder, KEYED, "keyed")
    mesh = MeshUnderTest(folder, workers=2, WEFT_BACKENDS=str(backends), WEFT_SECRETS_EVERY="1")
    try:
        mesh.up("--no-model")
        profile = json.loads(_printed_profile(backends))["profile"]
        told = mesh.http.post(f"{mesh.url}/api/engine-profiles", json=profile)
        assert 201 == told.status_code, told.text
        yield mesh
    finally:
        mesh.close()


def _printed_profile(backends: Path) -> bytes:
    import subprocess

    command = [str(backends / "keyed" / "bin" / "python"), "-m", "weft_engine.installed", "keyed"]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def drawn() -> str:
    """A value that nothing else looks like, with what JSON and shells would write otherwise."""
    return f'{secrets.token_hex(16)} "ä{secrets.token_hex(8)}'


def forms(value: str) -> list[bytes]:
    """How a value could stand somewhere: as it is, its longest plain part, and base64 of it wherever it begins."""
    raw = value.encode()
    plain = value.split()[0].encode()
    shifted = [base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3)]
    return [raw, plain, plain.hex().encode(), *shifted, *(each.translate(_URL_SAFE) for each in shifted)]


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def found_on_disk(folder: Path, wanted: list[bytes]) -> list[str]:
    """Files of a folder, the log's own among them, that hold any of these."""
    found: list[str] = []
    for file in folder.rglob("*"):
        try:
            content = file.read_bytes() if file.is_file() else b""
        except OSError:  # a socket, or gone meanwhile
            continue
        found += [str(file) for each in wanted if each in content]
    return found


def found_in_processes(mesh: MeshUnderTest, wanted: list[bytes]) -> list[str]:
    """What of the mesh's processes anybody of this user may read and holds any of these."""
    found: list[str] = []
    for process in mesh.processes():
        for what in ("environ", "cmdline"):
            try:
                content = Path(f"/proc/{process.pid}/{what}").read_bytes()
            except OSError:
                continue
            found += [f"{what} of {process.pid}" for each in wanted if each in content]
    return found


def digest(value: str) -> str:
    """What the engine answers where it has this value."""
    return hashlib.sha256(value.encode()).hexdigest()


def set_secret(mesh: MeshUnderTest, name: str, value: str) -> None:
    said = mesh.weft("secrets", "set", name, typed=f"{value}\n")
    assert 0 == said.returncode, said.stderr
    assert not any(each.decode() in said.stdout + said.stderr for each in forms(value))


def poll(mesh: MeshUnderTest, node: str, name: str) -> httpx.Response:
    """What a worker's own machine is answered that asks for a secret with its key."""
    seed = mesh.state / "workers" / node.removeprefix("worker-") / "node.seed"
    key = KeyPair.from_seed(seed.read_text().strip())
    id = mesh.http.get(f"{mesh.url}/api/nodes/{node}").json()["id"]
    nonce = f"{time.time():.3f}"
    signature = base64.b64encode(key.sign(f"weft-secret:{name}:{id}:{nonce}".encode())).decode()
    body = {"node": id, "nonce": nonce, "signature": signature, "name": name}
    return mesh.http.post(f"{mesh.url}/api/node/secret", json=body)


def facts(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    """All that the log says of secrets."""
    return [each["fact"] for each in mesh.facts("mesh", "secret_set")]


@pytest.mark.sabotage("secrets-in-the-environment")
def test_a_secret_reaches_the_engine_that_names_it_and_is_found_nowhere(mesh: MeshUnderTest) -> None:
    first, second = drawn(), drawn()
    spec = {**SPEC, "engine_args": {"api_key": "secret:cloud-key"}}
    # given a spec that names a secret which isn't there: that is said at once
    refused = mesh.deploy("cloud", spec)
    assert (422, "set it first, by `weft secrets set cloud-key`") == (
        refused.status_code,
        refused.json()["detail"].partition(": ")[2],
    )
    # when it is set, by a pipe, and the spec is deployed
    set_secret(mesh, "cloud-key", first)
    assert 201 == mesh.deploy("cloud", spec).status_code
    (replica,) = until("it serves", lambda: mesh.ready_replicas("cloud"), 60)
    # then its engine has the value
    assert digest(first) == mesh.ask("key?", "cloud")

    # when it is set anew, then the same process goes on with the other value
    hosts = {host.pid for worker in ("worker-1", "worker-2") for host in mesh.hosts(worker)}
    set_secret(mesh, "cloud-key", second)
    until("the engine has the new value", lambda: digest(second) == mesh.ask("key?", "cloud"), 60)
    assert hosts == {host.pid for worker in ("worker-1", "worker-2") for host in mesh.hosts(worker)}
    assert [replica["id"]] == [each["id"] for each in mesh.ready_replicas("cloud")]

    # and neither stands anywhere: no event, no file, no log, no command line, no environment
    wanted = [*forms(first), *forms(second)]
    log = json.dumps(mesh.events(), ensure_ascii=False).encode()
    assert [] == [each for each in wanted if each in log]
    assert [{"type", "v", "name", "version", "sealed"}] * 2 == [set(each) for each in facts(mesh)]
    assert [] == found_on_disk(mesh.folder, wanted)
    assert [] == found_in_processes(mesh, wanted)
    (shown,) = json.loads(done(mesh, "secrets", "list", "--json"))
    assert ("cloud-key", ["cloud"]) == (shown["name"], shown["models"])


@pytest.mark.sabotage("secrets-for-any-node")
def test_a_secret_goes_to_the_node_alone_that_is_to_run_what_names_it(mesh: MeshUnderTest) -> None:
    value = drawn()
    set_secret(mesh, "narrow", value)
    # given a replica on one of two workers
    assert 201 == mesh.deploy("narrow", {**SPEC, "engine_args": {"api_key": "secret:narrow"}}).status_code
    (replica,) = until("it serves", lambda: mesh.ready_replicas("narrow"), 60)
    there = replica["node_name"]
    other = {"worker-1": "worker-2", "worker-2": "worker-1"}[there]
    # then that node is given it, sealed, and the other is told why not
    given = poll(mesh, there, "narrow")
    assert 200 == given.status_code, given.text
    assert not any(each in base64.b64decode(given.json()["sealed"]) for each in forms(value))
    denied = poll(mesh, other, "narrow")
    assert (403, "secret_not_assigned") == (denied.status_code, denied.json().get("code"))
    # and what a model names can't be removed, until the model is gone
    kept = mesh.weft("secrets", "remove", "narrow")
    assert 1 == kept.returncode
    assert "narrow would be left without it" in kept.stderr
    done(mesh, "remove", "narrow")
    until("it is removed", lambda: 0 == mesh.weft("secrets", "remove", "narrow").returncode, 60)
    assert 403 == poll(mesh, there, "narrow").status_code
