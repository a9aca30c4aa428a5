"""The Tiltfile is true of the tree, of the images and of the manifests; and a lie in it is seen."""

import shutil
from pathlib import Path

import pytest
import starlark

from . import tilt_functions
from .tilt_faults import faults

ROOT = Path(__file__).resolve().parents[3]
TILT = ROOT / "tilt"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as the Tiltfile sees it, with a folder `tilt` of its own."""
    folder = tmp_path_factory.mktemp("tree")
    for each in ROOT.iterdir():
        if each.name != "tilt" and not each.name.startswith("."):
            (folder / each.name).symlink_to(each)
    return folder


def of(tiltfile: Path, root: Path) -> list[str]:
    return faults(root, tilt_functions.run(tiltfile))


def test_what_the_tiltfile_says_is_so(tree: Path) -> None:
    shutil.copytree(TILT, tree / "tilt", dirs_exist_ok=True)
    assert [] == of(tree / "tilt" / "Tiltfile", tree)


LIES = {
    "a path that isn't there": (
        "'../deploy/images/Containerfile'",
        "'../deploy/images/Dockerfile'",
        "which isn't there",
    ),
    "another context": (
        "        '..',\n        dockerfile",
        "        '../libs',\n        dockerfile",
        "which isn't there",
    ),
    "a target that isn't there": ("target=image,", "target=image + '-dev',", "has no target"),
    "a part of the build left out": ("            'models',\n", "", "which Tilt leaves out"),
    "something in the build that isn't there": (
        "            'models',\n",
        "            'models',\n 'docker',\n",
        "docker is not",
    ),
    "a library too few": (
        "['fleet', 'placement', 'requests']",
        "['fleet', 'placement']",
        "live update has it otherwise",
    ),
    "a library too many": (
        "RUNTIME + ['fleet', 'placement'],",
        "RUNTIME + ['fleet', 'placement', 'gguf'],",
        "libs/gguf",
    ),
    "a model too few": ("['tiny', 'tiny-embed']", "['tiny']", "models/tiny-embed"),
    "a folder of others that isn't copied": (
        "'../libs', '../services', '../models'",
        "'../libs', '../services'",
        "anew",
    ),
    "code where nobody looks": ("sync(each, SOURCE)", "sync(each, '/opt/weft')", "/opt/weft is no volume"),
    "a volume where nobody looks": ("'mountPath': SOURCE}", "'mountPath': '/src'}", "written is at /src"),
    "another service's program": (
        "container['command'] = ['sh', '-c', KEEP, 'keep', module,",
        "container['command'] = ['sh', '-c', KEEP, 'keep', 'weft_registry',",
        "its image runs ['weft_scheduler']",
    ),
    "no falling back": ("steps = [fall_back_on(locks)]", "steps = []", "falls back on nothing"),
    "falling back on less": ("['../pyproject.toml', '../requirements.lock']", "['../pyproject.toml']", "environment"),
    "nothing anew": ("return steps + [run(ANEW, trigger=sources)]", "return steps", "starts nothing anew"),
    "everything anew": ("run(ANEW, trigger=sources)]", "run(ANEW)]", "`weft dev` has it otherwise"),
    "hosts that go on with their old code": (
        "HOST = ['contracts', 'dataplane', 'engine', 'gguf']",
        "HOST = ['engine']",
        "starts a part of it anew",
    ),
    "a supervisor that goes on with its old code": (", AGENT + 'outbound/supervisor'", "", "starts a part of it anew"),
    "an image that nobody builds": (
        "for service, image in IMAGES.items():\n    docker_build(",
        "for service, image in [each for each in IMAGES.items() if each[0] != 'gateway']:\n    docker_build(",
        "weft/gateway, which nobody builds",
    ),
    "a workload without a resource": (
        "    'scheduler': ['registry'],\n",
        "",
        "scheduler is a workload without a resource",
    ),
    "a workload that isn't there": (
        "    'nats': ['keys'],\n",
        "    'nats': ['keys'],\n    'redis': [],\n",
        "no such workload",
    ),
    "waiting for nobody": ("'nats': ['keys']", "'nats': ['key']", "waits for key, which isn't there"),
    "waiting for one another": ("'nats': ['keys']", "'nats': ['worker']", "waits for ever"),
    "an object that isn't there": ("'weft:namespace'", "'mesh:namespace'", "no mesh:namespace"),
    "a port that isn't there": ("'8080:8080'", "'8080:8081'", "no port 8081"),
    "a link that leads nowhere": ("'8080:8080'", "'8081:8080'", "no port that is forwarded"),
    "another namespace": ("NAMESPACE = 'weft'", "NAMESPACE = 'mesh'", "mesh is no namespace"),
    "a command that isn't there": ("' deploy tiny'", "' launch tiny'", "is no command"),
    "an option that isn't there": ("' events --follow'", "' events --forever'", "is no command"),
    "a pod that isn't there": ("delete pod worker-0", "delete pod workers-0", "no pod workers-0"),
    "tests that aren't there": ("'./weft test services/' + service", "'./weft test libs/' + service", "no button does"),
    "a button less": (
        "for service in STANDS_ON:\n    button",
        "for service in ['gateway']:\n    button",
        "no button does",
    ),
    "a button that presses itself": ("auto_init=False", "auto_init=True", "runs by itself"),
    "a command in another folder": (
        "        dir='..',\n        serve_dir",
        "        dir='.',\n        serve_dir",
        "runs in .",
    ),
}
"""What is written instead of what, and a part of the sentence that tells it."""


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_the_tiltfile_is_seen(lie: str, tree: Path) -> None:
    true, false, told = LIES[lie]
    text = (TILT / "Tiltfile").read_text()
    assert 1 == text.count(true), true
    shutil.copytree(TILT, tree / "tilt", dirs_exist_ok=True)
    (tree / "tilt" / "Tiltfile").write_text(text.replace(true, false))
    found = of(tree / "tilt" / "Tiltfile", tree)
    assert [told in each for each in found if told in each][:1] == [True], found


def test_what_tilt_does_not_take_is_an_error(tree: Path) -> None:
    text = (TILT / "Tiltfile").read_text()
    shutil.copytree(TILT, tree / "tilt", dirs_exist_ok=True)
    for true, false in (("live_update=", "live_updates="), ("fall_back_on(", "fallback_on("), ("'keys',", "f'keys',")):
        (tree / "tilt" / "Tiltfile").write_text(text.replace(true, false, 1))
        with pytest.raises(starlark.StarlarkError):
            tilt_functions.run(tree / "tilt" / "Tiltfile")
