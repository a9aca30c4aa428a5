"""What services must not do, as a fence against mistakes."""

import pytest
from weft_contracts import catalogue, subjects
from weft_testing.mesh_server import MeshServer

from .permission_world import API, denied


@pytest.mark.parametrize("name", catalogue.SERVICES)
@pytest.mark.usefixtures("unchanged")
async def test_a_service_must_not_write_facts_that_others_own(mesh: MeshServer, name: catalogue.Writer) -> None:
    service = await mesh.service(name)
    foreign: set[str] = set()
    for entry in catalogue.CATALOGUE:
        if name not in entry.writers:
            key = "n-one.x-1" if entry.kind in ("run", "inspection") else "x-1"
            foreign.add(subjects.Aggregate(entry.kind, key).subject(entry.type))
    assert foreign
    for subject in sorted(foreign):
        await service.publish(subject, b"[]")
    assert sorted(foreign) == await denied(mesh, service, len(foreign))


SERVICE_MUST_NOT: list[tuple[catalogue.Writer, str, str]] = [
    ("gateway", "lay out credentials", "$KV.credentials.n-one"),
    ("gateway", "write blobs", "$O.blobs.C.x"),
    ("gateway", "make durables", f"{API}.CONSUMER.DURABLE.CREATE.EVENTS.node-n-one"),
    ("gateway", "hold another's lease", "weft.lease.service.registry"),
    ("gateway", "hold a node's lease", "weft.lease.node.n-one"),
    ("scheduler", "delete a stream", f"{API}.STREAM.DELETE.EVENTS"),
    ("scheduler", "purge the log", f"{API}.STREAM.PURGE.EVENTS"),
    ("scheduler", "delete an event", f"{API}.STREAM.MSG.DELETE.EVENTS"),
    ("scheduler", "delete a durable", f"{API}.CONSUMER.DELETE.EVENTS.node-n-one"),
    ("scheduler", "read credentials", f"{API}.DIRECT.GET.KV_credentials.$KV.credentials.n-one"),
    ("scheduler", "write another's snapshots", "weft.snapshot.registry.registry.a.head"),
    ("scheduler", "purge snapshots", f"{API}.STREAM.PURGE.SNAPSHOTS"),
    ("gateway", "write another's snapshots", "weft.snapshot.reconciler.reconciler.b.0"),
    ("scheduler", "settle usage", "weft.usage.k-1"),
    ("reconciler", "set another's timer", "weft.timer.scheduler.x"),
    ("reconciler", "put names of people", "$KV.people.k-1"),
    ("reconciler", "speak as a node", "weft.sig.node.n-one.load"),
    ("metadata-cache", "lay out credentials", "$KV.credentials.n-one"),
    ("metadata-cache", "read credentials", f"{API}.STREAM.MSG.GET.KV_credentials"),
    ("metadata-cache", "answer another's requests", "_INBOX_gateway.x"),
    ("gateway", "read what was sealed", f"{API}.DIRECT.GET.KV_secrets.$KV.secrets.sealed.x"),
    ("gateway", "read what was sealed from the leader", f"{API}.STREAM.MSG.GET.KV_secrets"),
    ("gateway", "show another sealing key", "$KV.secrets.key"),
    ("gateway", "lay out a node's secret", "$KV.secrets.node.n-one.key.7"),
    ("gateway", "erase a secret", f"{API}.STREAM.MSG.DELETE.KV_secrets"),
    ("registry", "set a secret", "$KV.secrets.sealed.x"),
    ("scheduler", "read a node's secret", f"{API}.DIRECT.GET.KV_secrets.$KV.secrets.node.n-one.key.7"),
    ("reconciler", "read secrets as they come", f"{API}.CONSUMER.CREATE.KV_secrets"),
    ("metadata-cache", "show another sealing key", "$KV.secrets.key"),
    ("registry", "purge the log", f"{API}.STREAM.PURGE.EVENTS"),
    ("registry", "delete a stream", f"{API}.STREAM.DELETE.KV_people"),
    ("registry", "delete the log", f"{API}.STREAM.DELETE.EVENTS"),
    ("registry", "put names of people", "$KV.people.k-1"),
    ("registry", "carry the stream away", f"{API}.STREAM.SNAPSHOT.EVENTS"),
    ("registry", "step the leader down", f"{API}.STREAM.LEADER.STEPDOWN.EVENTS"),
    ("registry", "change the accounts", "$SYS.REQ.CLAIMS.UPDATE"),
]


@pytest.mark.parametrize(
    ("name", "what", "subject"), SERVICE_MUST_NOT, ids=[f"{n}-{w}" for n, w, _ in SERVICE_MUST_NOT]
)
@pytest.mark.usefixtures("unchanged")
async def test_a_service_must_not(mesh: MeshServer, name: catalogue.Writer, what: str, subject: str) -> None:
    service = await mesh.service(name)
    await service.publish(subject, b"{}", reply=service.new_inbox())
    assert [subject.lower()] == await denied(mesh, service), what


@pytest.mark.parametrize("subject", ["_INBOX_registry.>", "_INBOX.>", "$KV.>", "$JS.>", ">", "weft.timer.registry.>"])
async def test_a_service_must_not_listen_to(mesh: MeshServer, subject: str) -> None:
    gateway = await mesh.service("gateway")
    await gateway.subscribe(subject)
    assert [subject.lower()] == await denied(mesh, gateway)
