"""Attacks on what isn't the foe's to say or to hear: others' subjects, leases, durables, inboxes, stores."""

from .attack import Attack, Foe

API = "$JS.API"
DENIED = "Denied by the server: its token names its own subjects, and nothing answers."
NOWHERE = "Its own request is answered to nobody: an answer does not cross into the account that owns the log."


def sends(tries: str, *subjects: str, body: bytes = b"[]") -> Attack:
    """Messages to subjects that its token doesn't name. `{}` stands for its own id."""

    async def act(foe: Foe) -> None:
        for subject in subjects:
            await foe.denied(subject.replace("{}", foe.id).replace("{worker}", foe.victim), body)

    return Attack(tries, DENIED, act)


def replies(tries: str, reply: str) -> Attack:
    """Its own requests with another's subject for the answer."""

    async def act(foe: Foe) -> None:
        own = f"EVENTS.node-{foe.id}"
        target = reply.replace("{}", foe.id).replace("{worker}", foe.victim)
        await foe.goes_nowhere(f"{API}.CONSUMER.MSG.NEXT.{own}", b'{"batch":5,"no_wait":true}', target)
        await foe.goes_nowhere(f"{API}.CONSUMER.RESET.{own}", b'{"seq":1}', target)
        await foe.goes_nowhere(f"weft.lease.node.{foe.id}", b"{}", target)
        await foe.goes_nowhere(foe.own("loading", "m-none-1"), b"[]", target)

    return Attack(tries, NOWHERE, act)


async def _listens(foe: Foe) -> None:
    for subject in (
        ">",
        "weft.>",
        "weft.ev.>",
        "weft.lease.>",
        "_INBOX.>",
        f"_INBOX_{foe.victim}.>",
        "$KV.>",
        "$SYS.>",
    ):
        await foe.deaf(subject)


ATTACKS: tuple[Attack, ...] = (
    sends("Says that another node's replica has stopped.", "weft.ev.run.{worker}.m-1.stopped"),
    sends("Reports another node's hardware.", "weft.ev.machine.{worker}.reported"),
    sends("Approves a node, itself among them.", "weft.ev.node.{}.approved", "weft.ev.node.{worker}.approved"),
    sends(
        "Calls another node offline, drained or removed.",
        "weft.ev.node.{worker}.offline",
        "weft.ev.node.{worker}.removed",
    ),
    sends(
        "Assigns itself a replica, or takes one from another.",
        "weft.ev.node.{}.assigned",
        "weft.ev.node.{worker}.unassigned",
    ),
    sends("Answers a request for change in the registry's stead.", "weft.ev.request.q-1.fulfilled"),
    sends("Asks for a change as the gateway does.", "weft.ev.request.q-evil.removal_requested"),
    sends("Makes itself a registration token.", "weft.ev.token.t-evil.created"),
    sends("Sets or lifts the brake.", "weft.ev.mesh.mesh.brake_set", "weft.ev.mesh.mesh.brake_lifted"),
    sends("Voids an event.", "weft.ev.run.{}.m-1.voided", "weft.ev.machine.{}.voided"),
    sends("Scales or deletes a model.", "weft.ev.model.m-1.scaled", "weft.ev.model.m-1.deleted"),
    sends("Writes to its own node's aggregate.", "weft.ev.node.{}.labelled", "weft.ev.inspection.{}.i-1.requested"),
    sends("Publishes to subjects with wildcards.", "weft.ev.run.*.m-1.stopped", "weft.ev.>", "weft.lease.node.*"),
    sends("Renews another node's lease, so that a dead node looks alive.", "weft.lease.node.{worker}"),
    sends(
        "Takes a service's lease, so that nobody decides.",
        "weft.lease.service.registry",
        "weft.lease.service.scheduler",
    ),
    sends("Tells another node's load.", "weft.sig.node.{worker}.load"),
    sends(
        "Speaks as a service on SIGNALS, sets timers, settles usage.",
        "weft.sig.service.gateway.demand",
        "weft.sig.gateway.gateway-1.demand",
        "weft.timer.registry.x",
        "weft.usage.k-1",
    ),
    sends(
        "Pulls from another's durable, and so takes its assignments from it.",
        API + ".CONSUMER.MSG.NEXT.EVENTS.node-{worker}",
    ),
    sends("Acknowledges for another.", "$JS.ACK.EVENTS.node-{worker}.1.1.1.1.0"),
    sends("Rewinds another's durable.", API + ".CONSUMER.RESET.EVENTS.node-{worker}", body=b'{"seq":1}'),
    sends(
        "Makes itself a consumer of the whole log.",
        API + ".CONSUMER.CREATE.EVENTS",
        API + ".CONSUMER.CREATE.EVENTS.x.weft.ev.>",
    ),
    sends(
        "Gives its own durable another filter.",
        API + ".CONSUMER.CREATE.EVENTS.node-{}",
        API + ".CONSUMER.DURABLE.CREATE.EVENTS.node-{}",
    ),
    sends(
        "Deletes or pauses another's durable.",
        API + ".CONSUMER.DELETE.EVENTS.node-{worker}",
        API + ".CONSUMER.PAUSE.EVENTS.node-{worker}",
    ),
    sends(
        "Reads the log without a consumer.",
        API + ".DIRECT.GET.EVENTS",
        API + ".STREAM.MSG.GET.EVENTS",
        body=b'{"seq":1}',
    ),
    sends(
        "Reads another's credential.",
        API + ".DIRECT.GET.KV_credentials.$KV.credentials.{worker}",
        API + ".STREAM.MSG.GET.KV_credentials",
    ),
    sends("Lays out a credential for itself.", "$KV.credentials.{}"),
    sends(
        "Reads sealed secrets, its own copies or another's, or what an admin set.",
        API + ".DIRECT.GET.KV_secrets.$KV.secrets.node.{worker}.cloud.1",
        API + ".DIRECT.GET.KV_secrets.$KV.secrets.node.{}.cloud.1",
        API + ".DIRECT.GET.KV_secrets.$KV.secrets.sealed.0123456789abcdef0123456789abcdef",
        API + ".STREAM.MSG.GET.KV_secrets",
        API + ".CONSUMER.CREATE.KV_secrets",
    ),
    sends(
        "Lays out a secret for a node, or another key for admins to seal to.",
        "$KV.secrets.node.{worker}.cloud.1",
        "$KV.secrets.sealed.0123456789abcdef0123456789abcdef",
        "$KV.secrets.key",
        "weft.ev.mesh.mesh.secret_set",
        "weft.ev.request.q-evil.secret_requested",
    ),
    sends("Reads or writes the names of people.", "$KV.people.k-1", API + ".DIRECT.GET.KV_people.$KV.people.k-1"),
    sends("Reads or writes blobs.", "$O.blobs.C.x", "$O.blobs.M.x", API + ".DIRECT.GET.OBJ_blobs.$O.blobs.M.x"),
    sends(
        "Plants a snapshot for the registry to start from.",
        "weft.snapshot.registry.registry.a.head",
        "weft.snapshot.scheduler.scheduler.a.0",
    ),
    sends(
        "Deletes, purges or changes the log.",
        API + ".STREAM.DELETE.EVENTS",
        API + ".STREAM.PURGE.EVENTS",
        API + ".STREAM.UPDATE.EVENTS",
        API + ".STREAM.MSG.DELETE.EVENTS",
    ),
    sends(
        "Carries the log away, or unseats its leader.",
        API + ".STREAM.SNAPSHOT.EVENTS",
        API + ".STREAM.LEADER.STEPDOWN.EVENTS",
    ),
    sends("Writes into others' inboxes: forged answers.", "_INBOX_{worker}.x", "_INBOX_registry.x", "_INBOX_gateway.x"),
    sends("Changes the accounts, to undo a revocation.", "$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.ACCOUNT.PING"),
    Attack(
        "Listens to everything, to others' inboxes, to leases and to credentials.",
        "Denied by the server: it may listen to its own inboxes only.",
        _listens,
    ),
    replies(
        "Asks with another node's run for a reply subject: forges its `stopped`.", "weft.ev.run.{worker}.m-1.stopped"
    ),
    replies("Asks with its own node's aggregate for a reply subject: forges its approval.", "weft.ev.node.{}.approved"),
    replies("Asks with a credential's key for a reply subject.", "$KV.credentials.{worker}"),
    replies("Asks with the log's API for a reply subject.", API + ".STREAM.PURGE.EVENTS"),
    replies("Asks with another's lease for a reply subject.", "weft.lease.node.{worker}"),
)
