"""What the accounts export to one another, and the parties' permissions, as the contracts' catalogue has them."""

from collections.abc import Iterable

from weft_contracts import permissions as catalogue
from weft_contracts.catalogue import Writer

from weft_identity.grants import Permissions, ServiceExport
from weft_identity.trust import Account, AccountExports, Credentials, Trust

_MAX_SUBSCRIPTIONS = 256
"""Of a worker: far more than an agent needs."""
_OBSERVERS_SUBSCRIPTIONS = 16
"""It needs one for answers and one for a pull."""


def mesh_exports() -> AccountExports:
    """What workers and observers can reach of the account MESH."""
    return AccountExports(workers=_services(catalogue.WORKER_IMPORTS), observers=_services(catalogue.OBSERVER_IMPORTS))


def _services(shared: Iterable[catalogue.SharedSubject]) -> tuple[ServiceExport, ...]:
    return tuple(ServiceExport(each.subject, streamed=each.streamed) for each in shared)


def grants(party: catalogue.Permissions, *, max_subscriptions: int = -1) -> Permissions:
    """A party's permissions in the form of a token."""
    return Permissions(
        publish=party.publish,
        subscribe=party.subscribe,
        max_payload_bytes=party.payload_bytes,
        max_subscriptions=max_subscriptions,
    )


def service_credentials(trust: Trust, name: Writer) -> Credentials:
    """A new key and token for one of our services, in the account MESH."""
    return trust.user(Account.MESH, name, grants(catalogue.service(name)))


def worker_grants(party: catalogue.Permissions) -> Permissions:
    """A worker's permissions in the form of a token."""
    return grants(party, max_subscriptions=_MAX_SUBSCRIPTIONS)


def observer_grants(party: catalogue.Permissions) -> Permissions:
    """An observer's permissions in the form of a token."""
    return grants(party, max_subscriptions=_OBSERVERS_SUBSCRIPTIONS)
