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
