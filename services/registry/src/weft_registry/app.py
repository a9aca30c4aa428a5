"""The registry, put together."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY
from weft_contracts.commit import Decision, Recorded
from weft_contracts.ids import TokenId
from weft_fleet import JoinLimits, digest_of
from weft_identity import trust
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime
from weft_runtime.settings import BadSetting

from weft_registry.domain.decide import decide
from weft_registry.domain.failure_detector import Timeouts
from weft_registry.domain.founding import BootstrapToken
from weft_registry.domain.rate_monitor import Shares
from weft_registry.domain.state import RegistryState
from weft_registry.inbound.lease_poller import LeasePoller
from weft_registry.inbound.mesh_metrics import MeshMetrics
from weft_registry.inbound.service_poller import ServicePoller
from weft_registry.inbound.traffic_poller import TrafficPoller
from weft_registry.outbound.credentials import Issuer
from weft_registry.outbound.log_size_watch import LogSizeWatch
from weft_registry.outbound.memory_streams import MemoryStreams
from weft_registry.outbound.revocations import Revocations
from weft_registry.outbound.secret_copies import SecretCopies
from weft_registry.outbound.stream_limits import StreamLimits
from weft_registry.outbound.system_account import SystemAccount
from weft_registry.outbound.topology import keep_topology
from weft_registry.settings import RegistrySettings

if TYPE_CHECKING:
    from weft_identity.authority import Authority

_log: Any = get_logger("weft.registry")


async def start(runtime: Runtime) -> None:
    """Wire the registry: topology, fold, failure detector, rate monitor, rule, credentials."""
    settings = runtime.settings
    assert isinstance(settings, RegistrySettings)
    authority = _trust(settings.trust) if settings.trust is not None else None
    state = RegistryState()
    timeouts = Timeouts(
        unhealthy=settings.unhealthy_after,
        offline=settings.offline_after,
        after_start=settings.start_grace,
        after_return=settings.return_grace,
    )
    leases = LeasePoller(runtime, state, timeouts)
    leadership = await runtime.leadership()
    lasts = settings.credential_hours * 3600
    system = SystemAccount(runtime, authority) if authority is not None else None
    revocations: Revocations | None = None
    if authority is not None and system is not None:
        revocations = Revocations(runtime, state, authority, system, lasts=lasts)
    poller = TrafficPoller(state, Shares().times(settings.node_share), leadership, system, revocations)
    services = ServicePoller(state, leadership, system, leases.living)
    token = _bootstrap(settings)
    limits = JoinLimits(settings.waiting_nodes, settings.waiting_nodes_per_token, settings.waiting_hours * 3600)
    release = version("weft-registry")

    def fold(commits: Sequence[Recorded]) -> None:
        for commit in commits:
            state.apply(commit)
        poller.folded(commits)

    def rule(now: float, seed: int) -> list[Decision]:
        observations = replace(leases.observations(), floods=poller.floods)
        return decide(
            state,
            observations,
            now,
            timeouts=timeouts,
            version=release,
            token=token,
            limits=limits,
            services=services.heard,
        )

    size = LogSizeWatch(runtime)
    REGISTRY.register(MeshMetrics(lambda: state.fleet, leases.silences, lambda: size.now))
    runtime.spawn("log size", size.run())
    runtime.spawn("topology", keep_topology(runtime, system, StreamLimits(runtime, settings.nats_store_size)))
    runtime.spawn("memory streams", MemoryStreams(runtime, leadership).run())
    runtime.spawn("leases", leases.run())
    runtime.spawn("traffic", poller.run())
    runtime.spawn("services", services.run())
    projection = runtime.projection("registry", fold, state)
    await runtime.decide(projection, rule, lambda: digest_of(state))
    if authority is None or revocations is None:
        _log.warning("no trust folder: no worker can get a credential", remedy="set WEFT_TRUST")
        return
    issuer = Issuer(
        runtime,
        state,
        leadership,
        authority,
        revocations,
        lambda: poller.floods,
        url=settings.worker_nats_url or settings.nats_url,
        lasts=lasts,
        authority=_certificates(settings),
    )
    runtime.spawn("credentials", issuer.run())
    copies = SecretCopies(
        runtime, state, leadership, authority, lambda: projection.caught_up.is_set() and projection.halted is None
    )
    runtime.spawn("secrets", copies.run())


def _trust(folder: Path) -> trust.Trust:
    try:
        return trust.load(folder)
    except (trust.NoTrust, trust.ExposedTrust) as error:
        raise BadSetting(f"WEFT_TRUST: {error}") from None


def _certificates(settings: RegistrySettings) -> "Authority | None":
    if settings.trust is None or settings.tls_folder is None:
        return None
    from weft_identity import authority

    try:
        return authority.load(settings.trust)
    except (trust.NoTrust, trust.ExposedTrust) as error:
        raise BadSetting(f"WEFT_TRUST: {error}") from None


def _bootstrap(settings: RegistrySettings) -> BootstrapToken | None:
    if settings.bootstrap_token_id is None or settings.bootstrap_token_hash is None:
        return None
    said = settings.bootstrap_token_keys
    keys = None if said is None else tuple(sorted(filter(None, said.split(","))))
    return BootstrapToken(
        TokenId(settings.bootstrap_token_id), settings.bootstrap_token_hash, keys, settings.bootstrap_token_nodes
    )
