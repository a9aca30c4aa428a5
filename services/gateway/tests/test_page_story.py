"""The first page in a real browser over a real gateway and a real log, with what a calm mesh never shows."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import SpecAccepted, Unservable
from weft_contracts.facts.name import Aliased, Released
from weft_contracts.facts.node import Joined, WentOffline
from weft_contracts.facts.run import Failed
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, ModelSpec
from weft_contracts.ids import ModelId, NodeId, TokenId
from weft_contracts.subjects import MESH, model, name, node, run
from weft_testing.browser import Browser

World = Any
MODEL = ModelId("m-aaaaaaaaaaaaaaaa")
MARKUP = '<img src=x onerror="document.title=1">'
TAB, ESCAPE = "\ue004", "\ue00c"
BOTTOM = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
WIDTHS = (320, 390, 768, 1024, 1440, 2200)
CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = (color) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
};
const light = (c) => [...c].slice(0, 3).map((v) => v / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (e) => {
  for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; }
  return rgb('white');
};
const faint = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.checkVisibility() || e.closest(':disabled, svg, .skip')) continue;
  const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`);
}
return faint;
"""


@pytest_asyncio.fixture
async def gateway(world: World, browser: Browser) -> AsyncGenerator[World]:
    """A gateway on an empty log, and a browser that shows nothing yet."""
    await world.a_gateway()
    browser.look()
    yield world
    browser.open("about:blank")
    browser.errors()


async def test_an_empty_mesh_shows_the_line_that_deploys_something(gateway: World, browser: Browser) -> None:
    browser.open(gateway.url)
    browser.shows("#no-models", "./weft deploy tiny")
    browser.shows("#no-nodes", "No machine has joined")
    assert browser.run("return document.querySelector('#send').disabled")
    # and it goes when something is there
    await gateway.a_node()
    await gateway.a_model()
    browser.shows("#models", "sim")
    browser.shows("#nodes", "node-aaaa")
    assert "" == browser.text("#no-models") == browser.text("#no-nodes")
    assert [] == browser.errors()


async def test_a_name_that_looks_like_markup_stays_text_everywhere(gateway: World, browser: Browser) -> None:
    # given a log whose names and reasons are markup, as no route would let them in
    spec = ModelSpec(source=SimulatedSource(), engine="simulated")
    await gateway.tell(model(ModelId("m-x")), SpecAccepted(name=MARKUP, revision=1, digest="d", spec=spec))
    await gateway.tell(model(ModelId("m-x")), Unservable(revision=1, reason=MARKUP))
    addresses = Addresses(host="127.0.0.1", http_port=1)
    joined = Joined(name=MARKUP, public_key="U" + "A" * 55, token=TokenId("t-x"), addresses=addresses)
    await gateway.tell(node(NodeId("n-x")), joined)
    # when it is shown, and asked by that name
    browser.open(gateway.url)
    for place in ("#models", "#nodes", "#events", "#notices"):
        browser.shows(place, MARKUP)
    browser.choose("#model", MARKUP)
    browser.run("document.querySelector('#message').focus()")
    browser.type(MARKUP + "\n")
    browser.shows("#talk .you", MARKUP)
    browser.shows("#talk .them .reason", "can't be served")
    # then it is text: no element came of it, and nothing ran
    assert 0 == browser.count("img, [onerror]")
    assert "Weft" == browser.run("return document.title")


async def test_brake_lost_node_and_unservable_model_are_shown_with_their_reasons(
    gateway: World, browser: Browser
) -> None:
    browser.open(gateway.url)
    browser.shows("#link", "all well")
    await gateway.a_node()
    await gateway.a_model("sim")
    await gateway.a_placed_replica()
    await gateway.tell(node(NodeId("n-aaaaaaaaaaaaaaaa")), WentOffline(silent_for=7.5))
    await gateway.tell(model(ModelId("m-aaaaaaaaaaaaaaaa")), Unservable(revision=1, reason="the file ends early"))
    await gateway.tell(MESH, BrakeSet(silent=2, healthy_before=3))
    browser.shows("#link", "degraded")
    browser.shows("#notices .brake", "2 of 3 nodes fell silent at once")
    browser.shows("#models", "The file ends early.")
    browser.shows("#models", "./weft retry sim")
    browser.shows("#models .replicas", "on node-aaaa")
    browser.shows("#nodes .title", "offline")
    browser.shows("#notices", "sim is unservable, node-aaaa is offline")
    browser.shows("#events", "silent for 7.5 s")
    assert [] == browser.run(CONTRAST)
    browser.look(dark=True)
    assert [] == browser.run(CONTRAST)
    # and when the brake is lifted it is gone
    await gateway.tell(MESH, BrakeLifted(why="the leases are back"))
    browser.shows("#events", "the leases are back")

    async def gone() -> bool:
        return 0 == browser.count("#notices .brake")

    await gateway.until(gone)
    assert [] == browser.errors()


async def test_an_alias_shows_its_models_and_whether_each_can_be_asked_and_can_be_talked_to(
    gateway: World, browser: Browser
) -> None:
    # given a model that answers and one that can't, under two names besides
    await gateway.a_node()
    await gateway.a_model()
    await gateway.a_ready_replica()
    other = await gateway.a_model("other", id=ModelId("m-other"))
    await gateway.tell(model(other), Unservable(revision=1, reason="the file ends early"))
    first, second = (AliasTarget(model=id, weight=weight) for id, weight in ((other, 1), (MODEL, 3)))
    rules: dict[str, AliasRule] = {"chat": "order", "both": "weights"}
    for alias, rule in rules.items():
        aliased = Aliased(name=alias, rule=rule, targets=(first, second))
        await gateway.tell(name("model", alias), aliased)
    # when it is looked at
    browser.open(gateway.url)
    # then each says how it chooses, and of whom
    browser.shows("#aliases", "the first of these that is free answers")
    named = "return [...document.querySelectorAll('#aliases h3')].map((each) => each.textContent)"
    assert ["both", "chat"] == browser.run(named)
    lines = "return [...document.querySelectorAll('#aliases .replicas li')].map((each) => each.innerText.split(/\\n+/))"
    assert [
        ["weight 1, 25 %", "other", "0 of 0 ready", "unservable", "The file ends early."],
        ["weight 3, 75 %", "sim", "1 of 1 ready", "ready"],
        ["1.", "other", "0 of 0 ready", "unservable", "The file ends early."],
        ["2.", "sim", "1 of 1 ready", "ready"],
    ] == browser.run(lines)
    assert [] == browser.run(CONTRAST)
    # and it can be asked
    assert "chat (alias)" == browser.run("return document.querySelector('#model option[value=chat]').textContent")
    browser.choose("#model", "chat")
    browser.run("document.querySelector('#message').focus()")
    browser.type("Tell me about looms\n")
    browser.shows(".them .note", "from sim on node-aaaa")
    browser.shows(".them .from", "chat")
    # when it is taken away, it is gone from both
    await gateway.tell(name("model", "chat"), Released())

    async def gone() -> bool:
        return 0 == browser.count("#model option[value=chat]") and 1 == browser.count("#aliases h3")

    await gateway.until(gone)
    assert [] == browser.errors()


async def test_an_answer_comes_word_by_word_until_it_is_stopped(gateway: World, browser: Browser) -> None:
    await gateway.a_node()
    await gateway.a_model()
    await gateway.a_ready_replica(ms_per_token=200)
    browser.open(gateway.url)
    browser.shows("#models", "1 of 1 replica ready")
    # with the keyboard alone: the first stop is the way to the chat
    browser.type(TAB)
    browser.type("\n")
    assert "message" == browser.run("return document.activeElement.id")
    browser.type("Tell me about looms")
    browser.type("\n")
    browser.shows("#talk .you", "Tell me about looms")
    await gateway.until(_grows(browser))
    assert "" != browser.text("#stop")
    assert "" == browser.text("#send")
    assert "true" == browser.run("return document.querySelector('.them').getAttribute('aria-busy')")
    browser.shows("#figure-requests", "1")
    # when it is stopped
    browser.click("#stop")
    browser.shows(".them .note", "Stopped.")
    kept = browser.text(".them .text")
    # then the engine stops, too, and the page is as it was
    browser.shows("#figure-requests", "0")
    assert kept == browser.text(".them .text")
    assert "" == browser.text("#stop")
    assert "" != browser.text("#send")
    # and a second question bears the first
    browser.run("document.querySelector('#message').focus()")
    browser.type("More\n")
    await gateway.until(_grows(browser, ".turn:last-child"))
    browser.run("document.querySelector('#talk').focus()")
    browser.type(ESCAPE)
    browser.shows(".turn:last-child .note", "Stopped.")
    assert 4 == browser.count(".turn")
    browser.click("#anew")
    assert 0 == browser.count(".turn")
    assert [] == browser.errors()


async def test_a_conversation_outlives_a_reload_until_somebody_begins_anew(gateway: World, browser: Browser) -> None:
    # given two models, of which a person has asked the second, and a key in what was said
    await gateway.a_node()
    await gateway.a_model()
    await gateway.a_ready_replica(ms_per_token=0)
    await gateway.a_model("a-second", id=ModelId("m-bbbbbbbbbbbbbbbb"))
    browser.open(gateway.url)
    browser.shows("#models", "1 of 1 replica ready")
    browser.choose("#model", "sim")
    browser.run("document.querySelector('#message').focus()")
    browser.type("Is weft-00000000secretsecret a key?\n")
    browser.shows(".them .note", "tokens")
    said = browser.text(".them .text")
    # when the page is loaded again
    browser.open(gateway.url)
    # then it is all there, for the model that was asked, without the key
    browser.shows("#talk .you", "Is weft-… a key?")
    browser.shows(".them .note", "tokens")
    assert said == browser.text(".them .text")
    browser.shows("#models", "a-second")
    assert "sim" == browser.run("return document.querySelector('#model').value")
    assert "secret" not in browser.run("return sessionStorage.getItem('weft-chat')")
    # and the next question bears what was said
    browser.run(
        "window.sent = []; const real = fetch;"
        "window.fetch = (at, how) => { sent.push(how?.body); return real(at, how); }"
    )
    browser.run("document.querySelector('#message').focus()")
    browser.type("More\n")
    browser.shows(".turn:last-child .note", "tokens")
    bodies = [body for body in browser.run("return window.sent") if body]
    assert ["user", "assistant", "user"] == [each["role"] for each in json.loads(bodies[0])["messages"]]
    # and nothing is left where somebody begins anew
    browser.click("#anew")
    browser.open(gateway.url)
    browser.shows(".welcome", "Ask the mesh something")
    assert 0 == browser.count(".turn")
    browser.run("sessionStorage.clear()")
    assert [] == browser.errors()


async def test_what_is_kept_of_a_conversation_is_bounded_and_a_strange_one_is_none(
    gateway: World, browser: Browser
) -> None:
    browser.open(gateway.url)
    keep = "return import('/page/kept_talk.js').then(({keepTalk, keptTalk}) =>"
    long = "{model: 'm', question: 'q'.repeat(9000), answer: 'a', note: ''}"
    kept = browser.run(f"{keep} {{ keepTalk(Array.from({{length: 90}}, () => ({long}))); return keptTalk().length }})")
    size = browser.run("return sessionStorage.getItem('weft-chat').length")
    assert 0 < kept <= 50
    assert size <= 200_000
    for strange in ("no JSON", "{}", "[1, null]", '[{"model": 1}]'):
        browser.run("sessionStorage.setItem('weft-chat', arguments[0])", strange)
        assert [] == browser.run(f"{keep} keptTalk())")
    browser.run("sessionStorage.clear()")


async def test_a_reason_is_told_once_in_a_card_and_once_among_the_events(gateway: World, browser: Browser) -> None:
    reason = "the settings of this engine are wrong: bogus is none of them"
    await gateway.a_node()
    await gateway.a_model()
    for number in (1, 2):
        id = await gateway.a_placed_replica(number)
        await gateway.tell(
            run(NodeId("n-aaaaaaaaaaaaaaaa"), id), Failed(epoch=1, reason=reason, permanent=True, starts=1)
        )
    await gateway.tell(model(ModelId("m-aaaaaaaaaaaaaaaa")), Unservable(revision=1, reason=reason))
    browser.open(gateway.url)
    browser.shows("#models .title", "unservable")
    browser.shows("#events", "model unservable sim")
    browser.shows("#models .reason", "The settings of this engine are wrong")
    assert 1 == browser.text("#models").lower().count(reason)
    assert 1 == browser.text("#events").lower().count(reason)


async def test_the_page_says_that_the_gateway_is_gone_and_recovers_when_it_is_back(
    gateway: World, browser: Browser
) -> None:
    await gateway.a_node()
    await gateway.a_model()
    await gateway.a_ready_replica(ms_per_token=200)
    browser.open(gateway.url)
    browser.shows("#link", "all well")
    browser.run("document.querySelector('#message').focus()")
    browser.type("Tell me about looms\n")
    await gateway.until(_grows(browser))
    # when the gateway is killed in mid-stream
    gateway.gateways[-1].kill()
    await gateway.gateways[-1].wait()
    browser.shows("#link", "not connected")
    browser.shows("#away", "What you see is from")
    browser.shows(".them .reason", "ended before the answer did")
    # and another comes in its place, while something happened
    await gateway.tell(MESH, BrakeLifted(why="nobody saw this"))
    await gateway.a_gateway()
    # then the page goes on by itself, and has missed nothing
    browser.shows("#link", "all well", 30)
    browser.shows("#events", "nobody saw this")
    assert "" == browser.text("#away")
    browser.run("document.querySelector('#message').focus()")
    browser.type("Once more\n")
    await gateway.until(_grows(browser, ".turn:last-child"))


async def test_the_page_fits_every_width_and_everything_in_it_has_a_name(gateway: World, browser: Browser) -> None:
    await gateway.a_node()
    long = "a-model-with-a-name-" + "as-long-as-it-may-be-" * 5
    await gateway.a_model(long)
    await gateway.a_placed_replica()
    reason = "/a/path/without/a/break" * 12
    await gateway.tell(model(ModelId("m-aaaaaaaaaaaaaaaa")), Unservable(revision=1, reason=reason))
    browser.open(gateway.url)
    browser.shows("#models", long)
    browser.shows("#events", reason)
    for width in WIDTHS:
        browser.look(width=width)
        assert width == browser.run("return document.documentElement.scrollWidth"), f"it overflows at {width}"
        if width >= 960:  # both columns end together, and nothing lies below them but the footer
            chat, side, footer = (browser.run(BOTTOM, css) for css in (".chat", ".side", "footer"))
            assert abs(chat - side) < 1
            assert chat < footer <= 900
    assert [] == browser.nameless()
    assert 1 == browser.count("h1")
    assert "polite" == browser.run("return document.querySelector('#talk').getAttribute('aria-live')")
    assert 0 == browser.run(
        "return [...document.querySelectorAll('#models .pill, #nodes .pill')].filter((p) => !p.innerText.trim()).length"
    )


def _grows(browser: Browser, turn: str = ".them") -> Callable[[], Awaitable[bool]]:
    """Asks whether an answer has more text than when there first was some."""
    first = 0

    async def grows() -> bool:
        nonlocal first
        length = len(browser.text(f"{turn} .text"))
        first = first or length
        return length > first

    return grows
