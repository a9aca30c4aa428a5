"""Over a hundred attacks by an approved worker with its real credential, on a whole mesh: none changes anything."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from weft_contracts.catalogue import SERVICES
from weft_testing.story import MeshUnderTest, until

from .attack import Attack, Foe
from .attacks import ATTACKS

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
FOES = "foes"
OF_THE_FOE = ("foe", "waits", *(f"crowd-{number}" for number in range(Foe.CROWD)))
"""Names of the nodes that it makes: all others are as they were."""
SABOTAGED = {
    "Sends a registration again, and one from before it, to have an old address back.": "replayed-registration",
    "Says that another node's replica has stopped.": "wide-worker",
    "Writes 30,000 brackets within one another.": "brittle-reader",
    "Sends leases over four connections, each as fast as the server reads.": "deaf-to-floods",
}


def case(attack: Attack) -> Any:
    name = SABOTAGED.get(attack.tries)
    return pytest.param(attack, id=attack.tries, marks=[pytest.mark.sabotage(name)] if name else [])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    with MeshUnderTest(tmp_path_factory.mktemp("attacked"), WEFT_LOADING_WAIT_S="2") as mesh:
        yield mesh


@pytest.fixture(scope="module")
def foe(attacked: MeshUnderTest) -> Iterator[Foe]:
    """Approved, healthy, and with a replica of a model of its own to run."""
    mesh = attacked
    approving, asking = (token(mesh, auto_approve=approve) for approve in (True, False))
    crowd = token(mesh, auto_approve=False, most_waiting=Foe.CROWD)
    foe = Foe(mesh, approving, pending_token=asking, crowd_token=crowd)
    until("the foe is healthy", lambda: node(mesh, "foe")["state"] == "healthy", 30)
    mesh.deploy(FOES, SIMULATED | {"selector": {"camp": "foe"}}).raise_for_status()
    foe.take_assignment(FOES)
    foe.theirs = mesh.ready_replicas()[0]["id"]
    yield foe
    foe.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", [case(attack) for attack in ATTACKS])
def test_an_approved_worker_changes_nothing_but_itself(attacked: MeshUnderTest, foe: Foe, attack: Attack) -> None:
    before, head = picture(attacked), position(attacked)
    foe.do(attack.act(foe))
    if attack.cut_off:
        until("it is cut off", lambda: node(attacked, "foe")["state"] == "cut_off", 30)
        until("its connection has ended", lambda: not foe.client.is_connected, 30)
        assert " where a node may " in node(attacked, "foe")["reason"]
        foe.do(foe.asks(423, foe.node.poll()))
    goes_on(attacked)
    assert before == picture(attacked)
    assert [] == foreign(attacked, foe, head)
    if attack.suspect:
        suspects = [key for fold in folds(attacked, "registry") for key in fold["suspects"]]
        assert [] != [key for key in suspects if key.startswith(f"{attack.suspect}.{foe.id}")]

    if attack.cut_off:
        attacked.http.post(f"{attacked.url}/api/nodes/foe/resume", json={}).raise_for_status()
        foe.do(foe.returns())
        until("it is healthy again", lambda: node(attacked, "foe")["state"] == "healthy", 30)
        foe.take_assignment(FOES)


@pytest.mark.slow
@pytest.mark.sabotage("no-revocation")
def test_after_all_of_them_the_mesh_starts_again_deploys_serves_and_shuts_the_foe_out(
    attacked: MeshUnderTest, foe: Foe
) -> None:
    # given services that fold all of it anew
    mesh = attacked
    for service in SERVICES:
        mesh.kill(service)
    for service in SERVICES:
        until(f"{service} is back", lambda name=service: folds(mesh, name), 60)
    goes_on(mesh)
    # when a model comes
    mesh.deploy("after", SIMULATED | {"selector": {"!camp": ""}}).raise_for_status()
    until("it is ready", lambda: mesh.ready_replicas("after"), 60)
    assert mesh.ask(model="after")
    # and the foe is removed
    mesh.http.delete(f"{mesh.url}/api/nodes/foe", params={"force": "true"}).raise_for_status()
    until("it is cut off", lambda: not foe.client.is_connected)
    # then its credential opens nothing, and no poll brings another
    foe.do(foe.is_shut_out(foe.shown, foe.node))
    foe.do(foe.asks(403, foe.node.poll()))
    foe.do(foe.asks(403, foe.node.register(token(mesh, auto_approve=True))))
    goes_on(mesh)


def token(mesh: MeshUnderTest, **said: Any) -> str:
    made = mesh.http.post(f"{mesh.url}/api/tokens", json={"name": "for the foe", **said})
    made.raise_for_status()
    return made.json()["secret"]


def node(mesh: MeshUnderTest, name: str) -> dict[str, Any]:
    return next(node for node in mesh.status()["nodes"] if node["name"] == name)


def position(mesh: MeshUnderTest) -> int:
    return mesh.status()["log"]["position"]


def picture(mesh: MeshUnderTest) -> dict[str, Any]:
    """All that is not the foe's."""
    status = mesh.status()
    tokens = mesh.http.get(f"{mesh.url}/api/tokens").json()["items"]
    return {
        "nodes": [
            {key: node[key] for key in ("id", "state", "approved", "addresses", "hardware")}
            for node in status["nodes"]
            if node["name"] not in OF_THE_FOE
        ],
        "replicas": [r for r in status["replicas"] if r["model_name"] != FOES],
        "models": [(m["name"], m["state"]) for m in status["models"] if m["name"] != FOES],
        "brake": status["mesh"]["brake"],
        "tokens": [(each["id"], each["state"]) for each in tokens],
        "processes": {name: mesh.part(name)["restarts"] for name in (*SERVICES, "worker-1", "nats", "postgres")},
    }


def foreign(mesh: MeshUnderTest, foe: Foe, head: int) -> list[str]:
    """Commits since then that are neither the foe's own nor about it, nor this story's questions."""
    models = {model["id"] for model in mesh.status()["models"] if model["name"] == FOES}
    found: list[str] = []
    events = mesh.events(head)
    joined = ((event["key"], fact) for event in events for fact in event["facts"] if fact["type"] == "joined")
    foe.crowd |= {key for key, fact in joined if fact["name"] in OF_THE_FOE}
    for event in events:
        own = event["kind"] in ("run", "machine") and event["key"].split(".")[0] == foe.id
        replica = event["key"].rpartition("-")[0] in models
        theirs = (
            replica
            or event["key"] in models | foe.crowd | {foe.id}
            or event["kind"] in ("request", "name", "inspection")
        )
        measured = event["key"] == foe.victim and [fact["type"] for fact in event["facts"]] == ["pressure_changed"]
        asked = event["kind"] == "node" and [fact["type"] for fact in event["facts"]] == ["labelled"]
        if own:
            assert event["actor"] == foe.id
        if not (own or theirs or asked or measured):
            found.append(f"{event['kind']}.{event['key']}: {[fact['type'] for fact in event['facts']]}")
    return found


def folds(mesh: MeshUnderTest, service: str) -> list[dict[str, Any]]:
    response = httpx.get(f"{base(mesh, service)}/projections", timeout=10)
    response.raise_for_status()
    return response.json()


def base(mesh: MeshUnderTest, service: str) -> str:
    return mesh.url if service == "gateway" else f"http://127.0.0.1:{mesh.part(service)['port']}"


def goes_on(mesh: MeshUnderTest) -> None:
    """Every fold is at the head and may be decided from; the registry answers, and so does a model.

    Changes may be put off while a disk that is slow still stores what the foe sent, for 30 s at most.
    """

    def answered() -> httpx.Response | None:
        said = mesh.http.patch(f"{mesh.url}/api/nodes/worker-1/labels", json={"asked": str(time.monotonic_ns())})
        return None if said.status_code == 503 and said.json()["code"] == "log_away" else said

    patch = until("the log takes a change", answered, 30)
    assert 200 == patch.status_code, patch.text
    head = mesh.http.get(f"{mesh.url}/api/events", params={"after": 10**9}).json()["head"]
    for service in SERVICES:

        def there(name: str = service) -> bool:
            return all(fold["position"] >= head and fold["halted"] is None for fold in folds(mesh, name))

        until(f"{service} has folded all", there, 30)
        assert 200 == httpx.get(f"{base(mesh, service)}/healthz", timeout=10).status_code, service
    until("the tables are written", lambda: mesh.status()["tables"]["position"] >= head, 30)
    assert "Paris" in mesh.ask()
