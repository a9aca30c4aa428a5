"""Attacks with what the foe may write: facts of its own machine and runs, meant to harm those who read them."""

import asyncio
import json
from typing import Any

from weft_testing.flushed import flushed

from .attack import CUT_OFF, Attack, Foe

UNCOUNTED = "Ignored: a run counts only under its node's present assignment."
ASIDE = "Set aside: its aggregate is suspect, nothing is decided about it, health tells it and stays good; all goes on."
PASSED = "Passed over: it is no commit of the log, and the fold goes on."
BIG = 1 << 53


def fact(type: str, **fields: Any) -> bytes:
    """A commit of one fact, as it would be written."""
    return json.dumps([{"type": type, **fields}]).encode()


def unreadable(tries: str, body: bytes, kind: str = "run") -> Attack:
    """A commit that can't be read."""

    async def act(foe: Foe) -> None:
        await foe.lands(foe.own("loading" if kind == "run" else "reported"), body)

    return Attack(tries, ASIDE, act, suspect=kind)


def says(tries: str, does: str, type: str, *, replica: str = "", **fields: Any) -> Attack:
    """A fact of its own run or machine. `{epoch}` is its assignment's, `{theirs}` the other node's replica."""

    async def act(foe: Foe) -> None:
        filled = {name: foe.assignment.epoch if value == "{epoch}" else value for name, value in fields.items()}
        name = foe.theirs if replica == "{theirs}" else replica
        await foe.lands(foe.own(type, name), fact(type, **filled))

    return Attack(tries, does, act)


def by_hand(
    tries: str, does: str, headers: bytes, body: bytes = b"", subject: bytes = b"", suspect: str = ""
) -> Attack:
    """Bytes that no client would send."""

    async def act(foe: Foe) -> None:
        own = foe.own("loading").encode()
        odd = b"weft.ev.run.%s.%s.loading" % (foe.id.encode(), subject)
        await foe.by_hand(odd if subject else own, headers, body)

    return Attack(tries, does, act, suspect)


def hardware(**fields: Any) -> dict[str, Any]:
    return {
        "hardware": {"cpus": 1, "memory": 1 << 33, **fields},
        "backends": [],
        "builtins": [],
        "agent_version": "foe",
    }


def device(index: int, memory: int) -> dict[str, Any]:
    return {"index": index, "vendor": "nvidia", "name": "H900", "memory": memory}


async def _borrowed_engine(foe: Foe) -> None:
    """Its replica is `ready` at the port, and with the incarnation, of another's engine on the same host."""
    theirs = next(r for r in foe.mesh.facts("run", "ready") if r["key"].endswith(foe.theirs))["fact"]
    for incarnation in (theirs["incarnation"], "foe-1"):
        body = {"epoch": foe.assignment.epoch, "incarnation": incarnation, "port": theirs["port"]}
        said = fact("ready", **body, engine="simulated", engine_version="1")
        await foe.lands(foe.own("ready"), said)
        answer = await asyncio.to_thread(foe.mesh.chat, "Who answers?", foe.assignment.model)
        assert answer.status_code in (503, 529), f"{answer.status_code}: {answer.text}"


async def _no_engine(foe: Foe) -> None:
    for port in (0, 1, 65535):
        body = {"epoch": foe.assignment.epoch, "incarnation": "foe-2", "port": port}
        await foe.lands(foe.own("ready"), fact("ready", **body, engine="simulated", engine_version="1"))
    answer = await asyncio.to_thread(foe.mesh.chat, "Who answers?", foe.assignment.model)
    assert answer.status_code in (503, 529), f"{answer.status_code}: {answer.text}"


async def _many_runs(foe: Foe) -> None:
    for number in range(3_000):
        await foe.client.publish(foe.own("loading", f"m-{number}"), b"garbage")
    await flushed(foe.client)


async def _many_files(foe: Foe) -> None:
    for number in range(50):
        many = [
            {"type": "file_missing", "inspection": "i-1", "source": f"path:/{number}-{n}", "reason": "no"}
            for n in range(400)
        ]
        await foe.pours(foe.own("file_missing"), json.dumps(many).encode(), 1)


async def _many_facts(foe: Foe) -> None:
    body = json.dumps([{"type": "loading", "epoch": foe.assignment.epoch, "incarnation": "x"}] * 1_500).encode()
    await foe.pours(foe.own("loading"), body, 20)


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "Says that its replica is ready at another engine's port, with that one's incarnation.",
        "The engine refuses the session: it is another replica. The client hears 503, never another model's answer.",
        _borrowed_engine,
    ),
    Attack(
        "Says that its replica is ready at ports where nothing of the mesh answers.",
        "The gateway's session fails; it ejects the replica, and the client hears 503.",
        _no_engine,
    ),
    says(
        "Says where its engine is, with another host in the fact.",
        "Ignored: an engine's host is its node's registered address.",
        "ready",
        epoch="{epoch}",
        incarnation="foe-3",
        port=4000,
        host="10.9.9.9",
        engine="simulated",
        engine_version="1",
    ),
    says(
        "Says `ready` for a replica that it was never given.",
        UNCOUNTED,
        "ready",
        replica="m-never-1",
        epoch=1,
        incarnation="x",
        port=4000,
        engine="simulated",
        engine_version="1",
    ),
    says(
        "Says `ready` for another node's replica.",
        UNCOUNTED,
        "ready",
        replica="{theirs}",
        epoch=1,
        incarnation="x",
        port=4000,
        engine="simulated",
        engine_version="1",
    ),
    says(
        "Says `stopped` for another node's replica.", UNCOUNTED, "stopped", replica="{theirs}", epoch=1, why="retired"
    ),
    says(
        "Says `failed` for another node's replica, for good: its model would be given up.",
        UNCOUNTED,
        "failed",
        replica="{theirs}",
        epoch=1,
        reason="broken",
        permanent=True,
        starts=3,
    ),
    says("Speaks of its replica under an epoch that never was.", UNCOUNTED, "stopped", epoch=BIG, why="retired"),
    says(
        "Names an incarnation of 60,000 characters.",
        "Taken as its own word; sessions with it fail.",
        "loading",
        epoch="{epoch}",
        incarnation="x" * 60_000,
    ),
    says(
        "Answers an inspection that nobody asked for.",
        "Ignored: the reconciler counts an answer only to its own question.",
        "file_found",
        inspection="i-none",
        source="builtin:tiny",
        size=1,
        weights={"format": "none"},
    ),
    says(
        "Answers with metadata files outside of the model's folder.",
        "Ignored: files are asked for by registered name, and kept by content.",
        "file_found",
        inspection="i-none",
        source="builtin:tiny",
        size=1,
        weights={"format": "none"},
        metadata=[{"name": "../../etc/passwd", "size": 1, "blake3": "0" * 64}],
    ),
    says(
        "Tells the pressure of devices that it doesn't have.",
        "Ignored: only reported devices have pressure.",
        "pressure_changed",
        device=77,
        bytes=BIG,
    ),
    says(
        "Reports one device with 8 petabytes.",
        "Taken as its own word: replicas that it gets fail there and are replaced elsewhere; no other's claims change.",
        "reported",
        **hardware(devices=[device(0, BIG)]),
    ),
    says(
        "Reports 600 devices.",
        "Taken as its own word; decisions go on at their pace.",
        "reported",
        **hardware(devices=[device(n, BIG) for n in range(600)]),
    ),
    Attack("Says 20,000 files that it lacks.", CUT_OFF, _many_files, cut_off=True),
    Attack("Puts 1,500 facts into one commit, twenty times.", CUT_OFF, _many_facts, cut_off=True),
    says(
        "Speaks in the name of an admin.",
        "Ignored: the actor of a node's commits is the node.",
        "loading",
        epoch="{epoch}",
        incarnation="x",
    ),
    unreadable("Writes what is no JSON.", b"garbage"),
    unreadable("Writes nothing.", b""),
    unreadable("Writes 30,000 brackets within one another.", b"[" * 30_000 + b"]" * 30_000),
    unreadable(
        "Hides the brackets in a field.", b'[{"type":"loading","epoch":' + b"[" * 20_000 + b"]" * 20_000 + b"}]"
    ),
    unreadable("Writes numbers that are none.", b'[{"type":"fetching","epoch":1,"bytes":NaN}]'),
    unreadable("Writes a version without an end.", b'[{"type":"loading","v":1e400,"epoch":1}]'),
    unreadable("Writes a number of 4,000 digits.", b'[{"type":"fetching","epoch":1,"bytes":' + b"9" * 4_000 + b"}]"),
    unreadable("Writes a fact of another kind.", fact("approved", by="me")),
    unreadable("Writes a fact of a type that nobody knows, so that readers wait for an upgrade.", fact("sang")),
    unreadable("Writes a fact in a version to come, for the same.", fact("loading", v=2, epoch=1, incarnation="x")),
    unreadable("Voids its own commits as an operator would.", fact("voided", sequence=1, why="me")),
    unreadable("Writes half a character.", b'[{"type":"loading","epoch":1,"incarnation":"\\ud800"}]'),
    unreadable(
        "Writes a character that no database takes.", b'[{"type":"loading","epoch":1,"incarnation":"a\\u0000b"}]'
    ),
    unreadable(
        "Writes a port below zero.",
        fact("ready", epoch=1, incarnation="x", port=-1, engine="simulated", engine_version="1"),
    ),
    unreadable("Reports less than no memory.", fact("reported", **hardware(memory=-1)), "machine"),
    unreadable(
        "Reports a device whose number has 4,000 digits.",
        fact("reported", **hardware()).replace(b'"cpus": 1', b'"cpus": ' + b"9" * 4_000),
        "machine",
    ),
    unreadable(
        "Answers an inspection with sizes below zero.",
        fact(
            "file_found",
            inspection="i-1",
            source="builtin:tiny",
            size=-5,
            weights={"format": "none", "weight_bytes": -1},
        ),
        "machine",
    ),
    by_hand("Writes to a subject that is no text.", PASSED, b"", b"[]", b"\xff\xfe"),
    by_hand("Writes to a subject with an id that is none.", PASSED, b"", b"[]", b"UPPER!CASE"),
    by_hand("Writes to a subject of 3,000 characters.", PASSED, b"", b"[]", b"a" * 3_000),
    by_hand(
        "Sends what looks like the server's heartbeat, so that readers pass it over and ask again.",
        ASIDE,
        b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
        b"",
        suspect="run",
    ),
    by_hand("Sends a status that is no text.", ASIDE, b"NATS/1.0 100 \xff\xfe\r\n\r\n", b"", suspect="run"),
    by_hand(
        "Sends what looks like the end of the consumer.",
        ASIDE,
        b"NATS/1.0 409 Consumer Deleted\r\n\r\n",
        b"[]",
        suspect="run",
    ),
    by_hand("Sends headers of no form.", ASIDE, b"garbage\r\n\r\n", b"[]", suspect="run"),
    by_hand(
        "Sends a correlation id of 60,000 characters, to be carried on by what follows.",
        "It is passed over: 200 printable characters go on.",
        b"NATS/1.0\r\nWeft-Correlation: " + b"x" * 60_000 + b"\r\n\r\n",
        fact("failed", epoch=1, reason="x", permanent=False, starts=1),
    ),
    by_hand(
        "Calls an unknown fact skippable, in an admin's name.",
        "Passed over; the commit's actor is the node.",
        b"NATS/1.0\r\nWeft-Actor: admin\r\nWeft-Skippable: sang\r\n\r\n",
        fact("sang"),
    ),
    Attack(
        "Writes garbage under 3,000 runs.",
        "The last hundred are remembered as suspects, and told without a line for each.",
        _many_runs,
    ),
)
