"""The registry, put together."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_contracts.commit import Decision, Recorded
from weft_contracts.ids import TokenId
from weft_placement.fleet import digest_of
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime
from weft_runtime.settings import BadSetting
from weft_servers import trust

from weft_registry.domain.decide import decide
from weft_registry.domain.founding import BootstrapToken
from weft_registry.domain.hearing import Patience
from weft_registry.domain.state import RegistryState
from weft_registry.inbound.leases import LeaseListener
from weft_registry.outbound.credentials import Issuer
from weft_registry.outbound.topology import keep_topology
from weft_registry.settings import RegistrySettings

if TYPE_CHECKING:
    from weft_servers.authority import Authority

_log: Any = get_logger("weft.registry")


async def start(runtime: Runtime) -> None:
    """Wire the registry: topology, fold, ears, rule, credentials."""
    settings = runtime.settings
    assert isinstance(settings, RegistrySettings)
    authority = _trust(settings.trust) if settings.trust is not None else None
    state = RegistryState()
    patience = Patience(
        unhealthy=settings.unhealthy_after,
        offline=settings.offline_after,
        after_start=settings.start_grace,
        after_return=settings.return_grace,
    )
    listener = LeaseListener(runtime, state, patience)
    await listener.listen()
    token = _bootstrap(settings)
    release = version("weft-registry")

    def fold(commits: Sequence[Recorded]) -> None:
        for commit in commits:
            state.apply(commit)
        listener.folded(commits)

    def rule(now: float, seed: int) -> list[Decision]:
        return decide(state, listener.signs(), now, patience=patience, version=release, token=token)

    runtime.spawn("topology", keep_topology(runtime))
    runtime.spawn("leases", listener.run())
    code = ("weft_placement", "weft_registry.domain", "weft_registry.app")
    projection = runtime.projection("registry", fold, state, code=code)
    await runtime.decide(projection, rule, lambda: digest_of(state))
    if authority is None:
        _log.warning("no trust folder: no worker can get a credential", remedy="set WEFT_TRUST")
        return
    issuer = Issuer(
        runtime,
        state,
        await runtime.leadership(),
        authority,
        url=settings.worker_nats_url or settings.nats_url,
        lasts=settings.credential_hours * 3600,
        authority=_certificates(settings),
    )
    runtime.spawn("credentials", issuer.run())


def _trust(folder: Path) -> trust.Trust:
    try:
        return trust.load(folder)
    except (trust.NoTrust, trust.ExposedTrust) as error:
        raise BadSetting(f"WEFT_TRUST: {error}") from None


def _certificates(settings: RegistrySettings) -> "Authority | None":
    if settings.trust is None or settings.tls_folder is None:
        return None
    from weft_servers import authority

    try:
        return authority.load(settings.trust)
    except (trust.NoTrust, trust.ExposedTrust) as error:
        raise BadSetting(f"WEFT_TRUST: {error}") from None


def _bootstrap(settings: RegistrySettings) -> BootstrapToken | None:
    if settings.bootstrap_token_id is None or settings.bootstrap_token_hash is None:
        return None
    return BootstrapToken(TokenId(settings.bootstrap_token_id), settings.bootstrap_token_hash)
