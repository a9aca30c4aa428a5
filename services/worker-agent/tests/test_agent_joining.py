"""How a node comes by its credential: every answer that a gateway may give."""

import asyncio
import base64
import json
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_contracts.ids import node_id
from weft_identity.nkey import role_of, signed_by
from weft_worker_agent.outbound.mesh import credential as stored
from weft_worker_agent.outbound.mesh import joining as module
from weft_worker_agent.outbound.mesh.credential import BadCredential, Credential
from weft_worker_agent.outbound.mesh.gateway import Gateway
from weft_worker_agent.outbound.mesh.identity import BadIdentity, NodeIdentity, load_or_make
from weft_worker_agent.outbound.mesh.joining import CannotJoin, Joining

BODY: dict[str, Any] = {"name": "one", "addresses": {"host": "127.0.0.1", "http_port": 4000}, "labels": {}}
GOOD: dict[str, Any] = {"jwt": "a.b.c", "nats_url": "nats://127.0.0.1:1", "expires_at": time.time() + 3600}


class Answers:
    """A gateway's answers, one after the other, the last one again and again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, Any] | Exception) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[httpx.Headers] = []
        self.times: list[float] = []
        self.also: dict[str, str] = {}
        """Headers of every answer."""
        self.clock: float | None = None
        """What the gateway's clock says; None: its answers bear no date."""
        self._answers = list(answers)
        real = httpx.AsyncClient

        def client(**options: Any) -> httpx.AsyncClient:
            return real(transport=httpx.MockTransport(self._answer), **options)

        monkeypatch.setattr(httpx, "AsyncClient", client)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path.rpartition("/")[2], json.loads(request.content)))
        self.headers.append(request.headers)
        self.times.append(time.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        date = {} if self.clock is None else {"date": formatdate(self.clock, usegmt=True)}
        return httpx.Response(answer[0], json=answer[1], headers=date | self.also)

    @property
    def order(self) -> list[str]:
        return [path for path, _ in self.asked]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_S", 0.01)
    monkeypatch.setattr(module, "_LONGEST_S", 0.02)


@pytest.fixture
def identity(tmp_path: Path) -> NodeIdentity:
    return load_or_make(tmp_path)


def joining(tmp_path: Path, identity: NodeIdentity, token: str | None = "secret") -> Joining:
    return Joining(Gateway("http://gateway", identity), tmp_path, BODY, token)


async def credential(subject: Joining) -> Credential:
    async with asyncio.timeout(30):
        return await subject.credential()


def test_a_node_is_its_key_over_every_start(tmp_path: Path) -> None:
    first, second = load_or_make(tmp_path), load_or_make(tmp_path)

    assert first == second
    assert 0o600 == (tmp_path / "node.seed").stat().st_mode & 0o777
    assert "USER" == role_of(first.public_key).name
    assert signed_by(first.public_key, b"hello", base64.b64decode(first.sign(b"hello")))
    assert "seed" not in repr(first)


def test_the_id_is_made_of_the_raw_key(tmp_path: Path) -> None:
    identity = load_or_make(tmp_path)
    raw = base64.b32decode(identity.public_key)

    assert node_id(raw[1:33]) == identity.node


def test_a_damaged_key_file_is_named_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "node.seed").write_text("SUsecretsecret")

    with pytest.raises(BadIdentity) as error:
        load_or_make(tmp_path)

    assert str(tmp_path / "node.seed") in str(error.value)
    assert "SUsecret" not in str(error.value)


async def test_a_new_node_registers_and_polls_until_it_is_approved(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Answers(monkeypatch, (202, {"node": identity.node}), (202, {"state": "pending"}), (202, {}), (200, GOOD))

    found = await credential(joining(tmp_path, identity))

    assert "a.b.c" == found.jwt
    assert ["register", "credential", "credential", "credential"] == gateway.order
    assert {"token": "secret", **BODY} == gateway.asked[0][1]
    poll = gateway.asked[1][1]
    signed = f"weft-credential:{identity.node}:{poll['nonce']}".encode()
    assert signed_by(identity.public_key, signed, base64.b64decode(poll["signature"]))


@pytest.mark.parametrize("ahead", [-600, 600])
async def test_a_node_whose_clock_is_wrong_takes_the_time_from_the_gateway(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    # given a gateway whose clock is ten minutes off, or the node's is, and a credential of five minutes
    theirs = time.time() + ahead
    good = GOOD | {"expires_at": theirs + 300}
    stale = (401, {"code": "stale_nonce"})
    gateway = Answers(monkeypatch, stale, (202, {}), (202, {}), (200, good))
    gateway.clock = theirs
    # when it joins
    stored.store_registered(tmp_path, None)
    found = await credential(joining(tmp_path, identity))
    # then it signed again with the mesh's time, and what it got is good on its own clock
    assert ["register", "register", "credential", "credential"] == gateway.order
    nonces = [int(headers["weft-nonce"]) for headers in gateway.headers[:2]]
    assert (True, True) == (abs(nonces[0] - time.time()) < 60, abs(nonces[1] - theirs) < 60)
    assert abs(int(gateway.asked[3][1]["nonce"]) - theirs) < 60
    assert found.valid(time.time())
    assert abs(found.expires_at - time.time() - 300) < 60


async def test_a_restarted_node_asks_nobody_while_its_credential_is_good(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store(tmp_path, Credential("x.y.z", "nats://n", time.time() + 3600, time.time()))
    stored.store_registered(tmp_path, BODY)
    gateway = Answers(monkeypatch, (500, {}))

    assert "x.y.z" == (await credential(joining(tmp_path, identity))).jwt
    assert [] == gateway.asked


async def test_an_expired_credential_is_fetched_anew_without_a_token(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store(tmp_path, Credential("x.y.z", "nats://n", time.time() - 1, time.time() - 100))
    stored.store_registered(tmp_path, BODY)
    gateway = Answers(monkeypatch, (200, GOOD))

    assert "a.b.c" == (await credential(joining(tmp_path, identity, token=None))).jwt
    assert ["credential"] == gateway.order


async def test_a_node_with_new_addresses_registers_again(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store(tmp_path, Credential("x.y.z", "nats://n", time.time() + 3600, time.time()))
    stored.store_registered(tmp_path, BODY | {"addresses": {"host": "127.0.0.1", "http_port": 1}})
    gateway = Answers(monkeypatch, (202, {}), (200, GOOD))

    await credential(joining(tmp_path, identity))

    assert ["register", "credential"] == gateway.order


async def test_a_good_credential_outlives_a_token_that_is_refused(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store(tmp_path, Credential("x.y.z", "nats://n", time.time() + 3600, time.time()))
    Answers(monkeypatch, (401, {"detail": "revoked"}))

    assert "x.y.z" == (await credential(joining(tmp_path, identity))).jwt


async def test_a_node_that_the_mesh_forgot_registers_again(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store_registered(tmp_path, BODY)
    gateway = Answers(monkeypatch, (404, {"detail": "unknown"}), (202, {}), (200, GOOD))

    await credential(joining(tmp_path, identity))

    assert ["credential", "register", "credential"] == gateway.order


@pytest.mark.parametrize(
    ("status", "detail", "says"),
    [
        (401, "The token is not one of this mesh's.", "WEFT_JOIN_TOKEN is not accepted"),
        (400, "`name` is too long.", "the gateway refuses it (400: `name` is too long.)"),
    ],
)
async def test_a_refusal_that_stays_one_ends_the_try_with_a_sentence(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch, status: int, detail: str, says: str
) -> None:
    Answers(monkeypatch, (status, {"detail": detail}))

    with pytest.raises(CannotJoin) as refused:
        await credential(joining(tmp_path, identity))

    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


async def test_without_a_token_a_new_node_says_what_it_needs(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    Answers(monkeypatch, (200, GOOD))

    with pytest.raises(CannotJoin, match="set WEFT_JOIN_TOKEN"):
        await credential(joining(tmp_path, identity, token=None))


@pytest.mark.parametrize(
    "answer",
    [
        (409, {"detail": "another node bears this name"}),
        (429, {"detail": "too often"}),
        (503, {"detail": "the log is away"}),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
    ],
)
async def test_what_may_change_is_tried_again(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    gateway = Answers(monkeypatch, answer, answer, (202, {}), (200, GOOD))

    await credential(joining(tmp_path, identity))

    assert ["register", "register", "register", "credential"] == gateway.order


async def test_a_node_that_is_asked_to_wait_leaves_the_gateway_alone_so_long(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a gateway that counts registrations, and asks to be left alone
    gateway = Answers(monkeypatch, (429, {"detail": "Too many tries; try again in 1 s."}), (202, {}), (200, GOOD))
    gateway.also = {"retry-after": "1"}
    # when a node joins whose own pauses are hundredths of a second
    await credential(joining(tmp_path, identity))
    # then it comes again no sooner than it was asked to, and is taken
    assert ["register", "register", "credential"] == gateway.order
    assert gateway.times[1] - gateway.times[0] >= 1.0


@pytest.mark.parametrize("said", ["soon", "-1", "1e9", ""])
async def test_a_retry_after_that_is_no_number_of_seconds_is_passed_over(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    gateway = Answers(monkeypatch, (429, {}), (202, {}), (200, GOOD))
    gateway.also = {"retry-after": said}

    await credential(joining(tmp_path, identity))

    assert 3 == len(gateway.asked)


async def test_an_answer_that_is_no_credential_is_asked_for_again(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Answers(monkeypatch, (202, {}), (200, {"jwt": 1}), (200, []), (200, GOOD))

    await credential(joining(tmp_path, identity))

    assert 4 == len(gateway.asked)


def test_a_credential_is_renewed_at_half_its_life() -> None:
    assert 1500.0 == Credential("j", "n", expires_at=2000.0, got_at=1000.0).renew_at
    with pytest.raises(BadCredential):
        stored.parse({"jwt": "x"}, 0.0)


def test_a_stored_credential_is_for_its_owner_alone(tmp_path: Path) -> None:
    stored.store(tmp_path, Credential("x.y.z", "nats://n", time.time() + 3600, time.time()))

    assert 0o600 == (tmp_path / "credential.json").stat().st_mode & 0o777
    assert "x.y.z" not in repr(stored.load(tmp_path))


async def test_what_keeps_it_from_the_log_is_said_to_the_gateway_signed_and_costs_nothing_where_that_fails(
    tmp_path: Path, identity: NodeIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Answers(monkeypatch, (200, {"state": "healthy"}), (500, {}), (404, {}))

    for _ in range(3):
        await joining(tmp_path, identity).tell("not reached:\n  timeout")

    said = gateway.asked[0][1]
    assert "not reached: timeout" == said["problem"]
    signed = f"weft-heartbeat:{identity.node}:{said['nonce']}".encode()
    assert signed_by(identity.public_key, signed, base64.b64decode(said["signature"]))
    assert 3 == len(gateway.asked)
