"""A replica whose engine can't be installed for want of room: it goes where there is some, and waits where there is
none."""

import pytest
from weft_contracts import subjects
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet, EngineProfileSet
from weft_contracts.facts.node import Cordoned, Uncordoned
from weft_contracts.facts.run import Installing, Stopped
from weft_contracts.facts.values import Device, Hardware, InstalledBackend, Installs

from .story import Story, simulated

ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo", "made_up_devices": False})
VARIANT = BackendVariant(vendor="cpu", package="echo", version="1", requirements=("echo==1",), disk=10)
NEEDED, FULL = 1000, 20


def report(story: Story, node: str, free: int, *, needed: int = 0, lies: bool = False) -> None:
    """What a node says of the disk of its engines."""
    processor = Device(index=0, vendor="cpu", name="processor", memory=1 << 30)
    made = InstalledBackend(name="echo-1", engine="echo", vendor="cpu", version="1", recipe=VARIANT.digest)
    reported = Reported(
        hardware=Hardware(cpus=2, memory=1 << 30, devices=(processor,)),
        backends=(),
        builtins=(),
        agent_version="1",
        installs=Installs(disk_free=free, room={VARIANT.digest: needed} if needed else {}),
        environments=(made,) if lies else (),
    )
    story.log.given(subjects.machine(story.id(node)), reported)


def fail_on(story: Story, number: int, node: str) -> None:
    """Its engine is to be installed there, and the disk is full."""
    story.place(number, node, backend=VARIANT)
    story.run(number, node, Installing(epoch=1, engine="echo"))
    report(story, node, FULL, needed=NEEDED)
    story.run(number, node, Stopped(epoch=1, why="exited", detail="the disk of /backends was full"))
    story.settle()


@pytest.fixture
def story() -> Story:
    """Two nodes that could install an engine, and a model of one replica that needs it."""
    story = Story()
    story.node("a", "b")
    story.log.given(subjects.MESH, EngineProfileSet(profile=ECHO))
    story.log.given(subjects.MESH, BackendSet(recipe=BackendRecipe(engine="echo", variants=(VARIANT,))))
    for node in "ab":
        report(story, node, 1 << 30)
    story.deploy("m", simulated(1, engine="echo"))
    story.settle()
    story.pass_time(60)
    return story


def test_it_is_replaced_where_another_node_has_room_and_the_reason_is_named(story: Story) -> None:
    fail_on(story, 1, "a")

    assert [2] == story.numbers()
    last = story.scaled()[-1]
    assert f"{story.replica(1).id} waits for room on a: the disk of /backends was full" == last.why
    assert () == last.avoid, "the node is a place again once it has room"
    assert {} == story.model().given_up


def test_it_waits_where_it_is_while_no_other_could_take_it_and_goes_once_one_can(story: Story) -> None:
    story.say("b", Cordoned())
    fail_on(story, 1, "a")
    assert [1] == story.numbers()
    assert [] == story.pass_time(300)

    story.say("b", Uncordoned())
    story.settle()

    assert [2] == story.numbers()


def test_two_full_disks_are_tried_once_each_and_the_first_to_have_room_is_the_place(story: Story) -> None:
    fail_on(story, 1, "a")
    fail_on(story, 2, "b")
    assert [2] == story.numbers()
    assert [] == story.pass_time(300)

    report(story, "a", NEEDED, needed=NEEDED)
    story.settle()

    assert [3] == story.numbers()


def test_one_that_is_installed_again_is_left_to_it(story: Story) -> None:
    story.place(1, "a", backend=VARIANT)
    report(story, "a", FULL, needed=NEEDED)
    story.run(1, "a", Installing(epoch=1, engine="echo"))
    story.settle()

    assert [1] == story.numbers()


@pytest.mark.parametrize(
    ("free", "needed", "lies"),
    [(NEEDED, NEEDED, False), (FULL, 0, False), (FULL, NEEDED, True)],
    ids=["there is room by now", "it ended of something else", "another worker has installed it"],
)
def test_one_that_lacks_no_room_stays(story: Story, free: int, needed: int, *, lies: bool) -> None:
    story.place(1, "a", backend=VARIANT)
    story.run(1, "a", Installing(epoch=1, engine="echo"))
    report(story, "a", free, needed=needed, lies=lies)
    story.run(1, "a", Stopped(epoch=1, why="exited", detail="it ended"))
    story.settle()

    assert [1] == story.numbers()
