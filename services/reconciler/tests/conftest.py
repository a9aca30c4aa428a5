"""The beginning that several files' stories share. One that begins otherwise says so by a fixture of its own."""

import pytest

from .story import Story, simulated


@pytest.fixture
def story() -> Story:
    """Four nodes, and revision 1 of model m, which wants two, ready on a and b."""
    story = Story()
    story.node("a", "b", "c", "d")
    story.deploy("m", simulated(2))
    story.settle()
    story.ready(1, "a")
    story.ready(2, "b")
    story.pass_time(60)
    return story
