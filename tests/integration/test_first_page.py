"""The first page: a browser at the gateway's root shows the mesh and asks it, with nothing to configure."""

import pytest
from weft_testing.browser import Browser
from weft_testing.story import MeshUnderTest

MARKUP = "<img src=x onerror=document.title=1>"


@pytest.mark.sabotage("mute-page")
def test_a_browser_at_the_root_shows_the_mesh_and_gets_an_answer(calm_mesh: MeshUnderTest, browser: Browser) -> None:
    # given nothing but the address
    browser.look()
    browser.open(calm_mesh.url)
    # then nodes, models and replicas are there with their states
    browser.shows("#nodes", "worker-1")
    browser.shows("#nodes .pill", "healthy")
    browser.shows("#models", "tiny")
    browser.shows("#models .replicas", "on worker-1")
    browser.shows("#models .replicas .pill", "ready")
    browser.shows("#events", "ready tiny #1 on worker-1")
    # and a question is answered by the model that the picker has chosen
    browser.run("document.querySelector('#message').focus()")
    browser.type("What is the capital of France?\n")
    browser.shows(".them .text", "Paris")
    browser.shows(".them .note", "from worker-1")
    assert [] == browser.errors()


@pytest.mark.sabotage("trusting-page")
def test_what_happens_appears_at_once_and_markup_in_it_stays_text(calm_mesh: MeshUnderTest, browser: Browser) -> None:
    # given an open page
    browser.look()
    browser.open(calm_mesh.url)
    browser.shows("#events", "ready tiny #1 on worker-1")
    # when a deploy fails whose path is markup
    spec = {"source": {"kind": "path", "path": f"/nowhere/{MARKUP}.gguf"}, "engine": "llama.cpp"}
    assert 422 == calm_mesh.deploy("marked", spec).status_code
    # then its events are there without a reload, as they were written
    browser.shows("#events", "request rejected")
    browser.shows("#events", MARKUP)
    assert 0 == browser.count("img")
    assert "Weft" == browser.run("return document.title")


@pytest.mark.sabotage("aliases-off-the-page")
def test_an_alias_is_shown_with_what_it_stands_for_and_can_be_talked_to(
    calm_mesh: MeshUnderTest, browser: Browser
) -> None:
    # given an open page
    browser.look()
    browser.open(calm_mesh.url)
    browser.shows("#models", "tiny")
    # when a name is let stand for a model
    done = calm_mesh.weft("aliases", "set", "talk", "tiny", "--in-order")
    assert 0 == done.returncode, done.stderr
    try:
        # then it is there, and so are its models
        browser.shows("#aliases h3", "talk")
        browser.shows("#aliases .replicas", "1 of 1 ready")
        # and who picks it is answered by one of them
        browser.choose("#model", "talk")
        browser.run("document.querySelector('#message').focus()")
        browser.type("What is the capital of France?\n")
        browser.shows(".them:last-child .text", "Paris")
        browser.shows(".them:last-child .note", "from tiny on worker-1")
        # at a terminal, too
        said = calm_mesh.weft("chat", "-m", "talk", "What is the capital of Peru?")
        assert (0, "Lima") == (said.returncode, "Lima" if "Lima" in said.stdout else said.stdout + said.stderr)
    finally:
        calm_mesh.weft("aliases", "remove", "talk")
    assert [] == browser.errors()
