"""A registry over a log in the hand, with a failure detector on a clock in the hand."""

import base64
import binascii
from collections.abc import Collection
from typing import Any

from weft_contracts import subjects
from weft_contracts.commit import Decision
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import Founded
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, JoinRequested, Rejected, RemovalRequested
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.token import Created, Revoked
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId, RequestId, TokenId, node_id_of, token_hash, token_id
from weft_fleet import JoinLimits, NodeView
from weft_registry.domain.decide import decide
from weft_registry.domain.failure_detector import FailureDetector, Observations, Timeouts
from weft_registry.domain.founding import BootstrapToken
from weft_registry.domain.state import RegistryState
from weft_registry.domain.upgrade import NOT_ASKED, ServicesHeard
from weft_testing import HandLog

HERE = Addresses(host="127.0.0.1", http_port=7000)
EVERY = 2.0
"""Seconds between a node's leases."""
STEP = 0.5
TOY = ReplicaId("m-toy-1")
SIMULATED = ModelSpec(source=SimulatedSource(), engine="simulated")
ROUNDS = 50
"""So many rounds without coming to rest are a loop."""


def nkey(number: int) -> str:
    """The public key of the node with this number, in its text form."""
    raw = bytes([20 << 3]) + number.to_bytes(32, "big")
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


def node(number: int) -> NodeId:
    return node_id_of(nkey(number))


def assigned(on: NodeId, replica: ReplicaId = TOY, spec: ModelSpec = SIMULATED, digest: str = "d") -> Assigned:
    """A replica of revision 1 whose only member is this node."""
    model = ModelId(replica.rpartition("-")[0])
    member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
    return Assigned(
        replica=replica,
        model=model,
        model_name="toy",
        revision=1,
        digest=digest,
        epoch=1,
        members=(member,),
        spec=spec,
    )


class Story:
    """What comes to rest is asserted; `live` lets time pass."""

    def __init__(
        self, timeouts: Timeouts | None = None, limits: JoinLimits | None = None, *, older: bool = False
    ) -> None:
        """`older`: the mesh was founded before any fact had a second version."""
        self.timeouts = timeouts or Timeouts()
        self.limits = limits or JoinLimits()
        self.log = HandLog()
        self.state = RegistryState()
        self.log.listen(self.state.apply)
        self.clock = 1000.0
        """The registry's monotonic clock, in seconds."""
        self.detector = FailureDetector.begin(self.clock, self.timeouts)
        self.services: ServicesHeard = NOT_ASKED
        self.bootstrap: BootstrapToken | None = None
        """What the registry is told by its settings, from the next decision on."""
        self.speaking: set[int] = set()
        """Nodes that renew their leases."""
        self.in_vain: list[Decision] = []
        """Decided while the log was not there: at a real one they could still land when it is back."""
        self._asked = 0
        if older:
            self.log.given(subjects.MESH, Founded(version="0"))
        self.settle()

    # given

    def token(
        self,
        secret: str = "open",
        *,
        approves: bool = True,
        expires_at: float | None = None,
        most_waiting: int | None = None,
    ) -> TokenId:
        id = token_id(secret)
        created = Created(hash=token_hash(secret), approves=approves, expires_at=expires_at, most_waiting=most_waiting)
        self.log.given(subjects.token(id), created)
        return id

    def revoke(self, id: TokenId) -> None:
        self.log.given(subjects.token(id), Revoked())

    def nodes(self, count: int) -> list[NodeId]:
        """Nodes 1 to `count`, approved, speaking and healthy, past every grace."""
        id = self.token()
        for number in range(1, count + 1):
            assert isinstance(self.join(number, id), Fulfilled)
        self.speaking = set(range(1, count + 1))
        self.live(self.timeouts.after_start + 70)
        return [node(number) for number in range(1, count + 1)]

    # when

    def ask(self, fact: Fact) -> subjects.Aggregate:
        self._asked += 1
        request = subjects.request(RequestId(f"q-{self._asked}"))
        self.log.given(request, fact, actor="gateway")
        return request

    def join(self, number: int, token: TokenId, **fields: Any) -> Fact:
        """Ask to join, let the registry answer, and return the outcome."""
        asked: dict[str, Any] = {
            "token": token,
            "name": f"node-{number}",
            "public_key": nkey(number),
            "addresses": HERE,
            **fields,
        }
        return self.answered(self.ask(JoinRequested.model_validate(asked)))

    def approve(self, id: NodeId) -> Fact:
        return self.answered(self.ask(ApprovalRequested(node=id)))

    def remove(self, id: NodeId) -> Fact:
        return self.answered(self.ask(RemovalRequested(node=id)))

    def answered(self, request: subjects.Aggregate) -> Fact:
        self.settle()
        outcome = self.log.facts(request)[-1]
        assert isinstance(outcome, Fulfilled | Rejected)
        return outcome

    def decided(self, observations: Observations | None = None, token: BootstrapToken | None = None) -> list[Decision]:
        if observations is None:
            known = [n.id for n in self.state.fleet.nodes.values() if n.approved and not n.removed]
            observations = self.detector.observations(known, self.clock, braked=self.state.fleet.brake is not None)
        return decide(
            self.state,
            observations,
            self.log.now,
            timeouts=self.timeouts,
            version="1",
            token=token or self.bootstrap,
            limits=self.limits,
            services=self.services,
        )

    def settle(self, observations: Observations | None = None) -> list[Fact]:
        """Take decisions until there are none; the facts that arose."""
        before, rounds = self.log.head, 0
        while decisions := self.decided(observations):
            rounds += 1
            assert rounds <= ROUNDS, f"no rest after {ROUNDS} rounds: {[d.why for d in decisions]}"
            self.log.take(decisions, actor="registry")
        return [fact for commit in self.log.commits[before:] for fact in commit.facts]

    def live(self, seconds: float, *, log_there: bool = True) -> list[Fact]:
        """Let time pass: nodes speak every 2 s, each at its own moment, the registry beats and decides every
        second. While the log is not there nothing is heard, and what is decided is kept in `in_vain`."""
        facts: list[Fact] = []
        for _ in range(round(seconds / STEP)):
            self.clock += STEP
            self.log.now += STEP
            if log_there:
                for number in self.speaking:
                    if (self.clock + STEP * number) % EVERY < STEP:
                        self.detector.renew(node(number), self.clock)
            if self.clock % 1.0 < STEP:
                healthy = [n.id for n in self.state.fleet.nodes.values() if n.presence == "healthy"]
                self.detector.note_healthy(healthy, self.clock)
                if log_there:
                    self.detector.echo(self.clock)
                    facts += self.settle()
                else:
                    self.in_vain += self.decided()
        return facts

    # then

    def view(self, number: int) -> NodeView:
        return self.state.fleet.nodes[node(number)]

    def states(self, numbers: Collection[int]) -> list[str]:
        return [self.view(number).state for number in numbers]
