"""Models whose number of replicas is left to what there is to do, for the stories about it."""

from .story import Story, simulated

MINUTES = 60


def an_elastic_model(least: int, most: int, ready: int | None = None) -> Story:
    """Model m with two places a replica, on six nodes; as many as `ready`, or its minimum, are ready."""
    story = Story()
    story.node(*"abcdef")
    story.deploy("m", simulated(least, most, concurrency=2))
    story.settle()
    for number in range(1, (least if ready is None else ready) + 1):
        story.ready(number, "abcdef"[number - 1])
    story.settle()
    return story


def all_ready(story: Story) -> None:
    """Whatever was added becomes ready, each on a node of its own."""
    taken = {member.node for view in story.wanted() for member in view.members}
    free = [each for each in "abcdef" if story.id(each) not in taken]
    for view in story.wanted():
        if view.state != "ready":
            story.ready(view.number, free.pop(0))
    story.settle()
