"""What the accounts export to one another, and the parties' permissions, as the contracts' catalogue has them."""

from weft_contracts import permissions as catalogue
from weft_contracts.catalogue import Writer

from weft_identity.grants import Permissions, ServiceExport, StreamExport
from weft_identity.trust import Account, AccountExports, Credentials, Trust

_MAX_SUBSCRIPTIONS = 256
"""Of a worker: far more than an agent needs."""


def mesh_exports() -> AccountExports:
    """What workers and observers can reach of the account MESH."""
    return AccountExports(
        workers=tuple(ServiceExport(each.subject, streamed=each.streamed) for each in catalogue.WORKER_IMPORTS),
        observers=tuple(StreamExport(subject) for subject in catalogue.OBSERVER_STREAMS),
    )


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
