"""The first page of a large mesh, and where things go wrong: the log away, a model that loads, an answer that fails."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.node import Cordoned, Uncordoned, WentOffline
from weft_contracts.facts.replica import Unplaceable
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Backend, Device, Hardware, ModelSpec, Receipt
from weft_contracts.ids import NodeId, replica_id
from weft_contracts.subjects import machine, model, node, replica
from weft_testing.browser import Browser

World = Any
SHOTS = os.environ.get("WEFT_PAGE_PICTURES")
"""A folder for pictures of what these stories show, for somebody to look at."""
BELOW = "const t = document.querySelector('#talk'); return t.scrollHeight - t.scrollTop - t.clientHeight"
"""How many pixels of the talk are out of sight below."""


@pytest_asyncio.fixture
async def gateway(world: World, browser: Browser) -> AsyncGenerator[World]:
    """A gateway on an empty log, and a browser that shows nothing yet."""
    await world.a_gateway()
    browser.look()
    yield world
    browser.open("about:blank")
    browser.errors()


def picture(browser: Browser, name: str) -> None:
    if SHOTS is not None:
        Path(SHOTS).mkdir(exist_ok=True)
        browser.picture(Path(SHOTS) / f"{name}.png")


async def test_a_large_mesh_is_counted_and_what_needs_an_eye_comes_first(gateway: World, browser: Browser) -> None:
    # given a hundred replicas of one model on sixty nodes, of which the last by name is lost
    nodes = [NodeId(f"n-{'a' * 12}{number:04}") for number in range(60)]
    for id in nodes:
        await gateway.a_node(id)
    await gateway.a_model()
    for number in range(1, 101):
        await gateway.a_placed_replica(number, on=nodes[number % len(nodes)])
    await gateway.tell(node(nodes[-1]), WentOffline(silent_for=7.5))
    # when somebody looks
    browser.open(gateway.url)
    browser.shows("#figure-nodes", "59 of 60")
    # then what is lost stands first and by name, and the rest is counted
    browser.shows("#nodes > li:first-child", "node-0059")
    browser.shows("#notices", "node-0059 is offline")
    browser.shows("#more-nodes", "and 12 more nodes, all healthy")
    browser.shows("#models", "and 88 more replicas")
    assert (48, 12) == (browser.count("#nodes > li"), browser.count("#models .replicas li"))
    # and events bear the names of nodes that are not shown
    shown = set(browser.text("#nodes").split())
    hidden = next(id for id in nodes if f"node-{id[-4:]}" not in shown)
    await gateway.tell(node(hidden), WentOffline(silent_for=7.5))
    browser.shows("#events li:first-child", f"node offline node-{hidden[-4:]}")
    browser.shows("#figure-nodes", "58 of 60")
    picture(browser, "large")
    assert [] == browser.errors()


async def test_a_replica_that_waits_shows_what_would_give_it_a_place_with_the_command_to_copy(
    gateway: World, browser: Browser
) -> None:
    # given a model whose two replicas have no place, since the only node is cordoned
    here = await gateway.a_node()
    gib = 1 << 30
    devices = (Device(index=0, vendor="cpu", name="a processor", memory=8 * gib),)
    hardware = Hardware(cpus=4, memory=8 * gib, disk_free=gib, devices=devices)
    backends = (Backend(engine="simulated", version="1", vendors=("cpu",)),)
    await gateway.tell(machine(here), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1"))
    await gateway.tell(node(here), Cordoned())
    of = await gateway.a_model()
    both = tuple(replica_id(of, number) for number in (1, 2))
    await gateway.tell(model(of), Scaled(revision=1, add=both, why="wanted"))
    receipt = Receipt(
        position=1,
        policy="balanced",
        policy_digest="d",
        seed=0,
        trigger="t",
        decided_at=0.0,
        refusals={},
        candidates=(),
    )
    waits = Unplaceable(model=of, revision=1, reason="1 node: it is cordoned", receipt=receipt)
    for id in both:
        await gateway.tell(replica(id), waits)
    # when somebody opens what would help
    browser.open(gateway.url)
    browser.shows("#models", "1 node: it is cordoned")
    browser.shows("#models .remedies", "What would give it a place")
    browser.click("#models .remedies summary")
    # then the change is there, and its command, which can be copied
    browser.shows("#models .remedies", "It would have a place after any of these:")
    browser.shows("#models .remedies li", "uncordon node-")
    browser.shows("#models .remedies code", f"./weft nodes uncordon node-{here[-4:]}")
    browser.click("#models .remedies button")
    browser.shows("#models .remedies button", "Cop")
    assert [] == browser.nameless()
    picture(browser, "remedies")
    # and what one says another that waits for the same doesn't say again
    assert 2 == browser.count("#models .replicas > li")
    assert not browser.run("return document.querySelectorAll('#models .remedies')[1].checkVisibility()")
    # and opened again it is asked anew
    await gateway.tell(node(here), Uncordoned())
    browser.shows("#nodes .pill", "healthy")
    browser.click("#models .remedies summary")
    browser.click("#models .remedies summary")
    browser.shows("#models .remedies", "It has a place now")
    assert 0 == browser.count("#models .remedies li")
    assert [] == browser.errors()


async def test_a_page_without_its_log_says_so_and_goes_on_by_itself(gateway: World, browser: Browser) -> None:
    await gateway.a_node()
    await gateway.a_model()
    await gateway.a_ready_replica()
    browser.open(gateway.url)
    browser.shows("#models", "1 of 1 replica ready")
    # when the log is away
    gateway.mesh.server.stop()
    browser.shows("#link", "degraded", 30)
    browser.shows("#notices", "The event log is away")
    picture(browser, "log-away")
    # then a question is answered all the same
    browser.run("document.querySelector('#message').focus()")
    browser.type("Tell me about looms\n")
    browser.shows(".them .note", "tokens", 30)
    # and when it is back the page shows what comes
    gateway.mesh.start_again()
    browser.shows("#link", "all well", 60)
    await gateway.a_node(NodeId("n-bbbbbbbbbbbbbbbb"))
    browser.shows("#events", "node-bbbb", 30)
    browser.shows("#figure-nodes", "2 of 2")


async def test_a_model_that_loads_and_an_answer_that_fails_are_said_in_the_chat(
    gateway: World, browser: Browser
) -> None:
    await gateway.a_node()
    await gateway.a_model(spec=ModelSpec(source=SimulatedSource(), engine="simulated", context_tokens=16384))
    id = await gateway.a_placed_replica()
    browser.open(gateway.url)
    browser.shows("#models", "loading")
    browser.shows("#model", "sim (loading)")
    # when somebody asks while it loads, the question waits, and says so
    browser.run("document.querySelector('#message').focus()")
    browser.type("Grüße, 織り機 🧵\n")
    browser.shows("#talk .you", "Grüße, 織り機 🧵")
    browser.shows(".them .note", "sim is loading; the question waits for it.")
    picture(browser, "loading")
    await gateway.ready(id, ms_per_token=0)
    # then it is answered once the model is ready
    browser.shows(".them .note", "tokens", 30)
    # and an answer that fails says why, keeps what came, and gives no question back that was half answered
    browser.run("document.querySelector('#message').focus()")
    browser.type("Please [[fail]]\n")
    browser.shows(".turn:last-child .reason", "the prompt asked the engine to fail")
    assert "" != browser.text(".turn:last-child .text")
    # and one that is refused at once gives the question back
    browser.click("#anew")
    browser.run("document.querySelector('#message').value = 'word '.repeat(20000)")
    browser.click("#send")
    browser.shows(".turn:last-child .reason", "tokens")
    assert browser.run(BELOW) < 2
    assert 100_000 - 1 == browser.run("return document.querySelector('#message').value.length")
    picture(browser, "refused")
    # and a long answer keeps its end in sight
    browser.click("#anew")
    browser.run("document.querySelector('#message').value = 'Tell me everything.'")
    browser.click("#send")
    browser.shows(".turn:last-child .note", "tokens", 60)
    assert browser.run(BELOW) < 2
    picture(browser, "long")
    assert [] == [line for line in browser.errors() if "400" not in line]
