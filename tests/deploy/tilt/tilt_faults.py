"""What is wrong with what a Tiltfile declares, held against the tree, the images and the manifests."""

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner
from weft_cli.app import app
from weft_devtools.dev import affected, members
from weft_devtools.dev.affected import Affected
from weft_devtools.dev.members import Members

from .tilt_functions import Declared, Image, Local

OURS = "weft/"
TOPS = ("libs", "services", "models")
"""What the images are built of, as `weft dev` watches it."""
_STAGE = re.compile(r"^FROM \S+ AS (\S+)$", re.MULTILINE)
_ENTRYPOINT = re.compile(r'^ENTRYPOINT \["python", "-m", "(\w+)"\]$', re.MULTILINE)
_COPY = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)
_WEFT = re.compile(r"\./weft ([^|>;&]+)")
_OF_KUBECTL = re.compile(r"kubectl .*?-n (\S+)")


def faults(root: Path, found: Declared) -> list[str]:
    """A sentence for each; none where all of it is true. `root` is the tree's, whose folder `tilt` has the Tiltfile."""
    tree = _tree(root)
    pods = {each["metadata"]["name"]: each for each in found.objects if each["kind"] in ("Deployment", "StatefulSet")}
    return [
        *(fault for each in found.images for fault in _of_image(root, tree, each, pods)),
        *_of_missing_images(found, pods),
        *_of_resources(root, found, pods),
        *(fault for each in found.locals for fault in _of_command(root, each, found)),
        *_of_buttons(tree, found),
    ]


def _of_image(root: Path, tree: Members, image: Image, pods: dict[str, Any]) -> Iterator[str]:
    here = root / "tilt"
    containerfile = _path(here, image.dockerfile)
    context = _path(here, image.context)
    if context != root or not containerfile.is_file():
        yield f"{image.ref} is built from {image.context} by {image.dockerfile}, which isn't there"
        return
    stages = containerfile.read_text().split("\nFROM ")
    stage = next((each for each in stages if re.match(rf"\S+ AS {re.escape(image.target)}$", each, re.MULTILINE)), None)
    if stage is None or image.ref != OURS + image.target:
        yield f"{image.ref}: {image.dockerfile} has no target {image.target} for it"
        return
    copied = {name for line in _COPY.findall(containerfile.read_text()) for name in line.split()}
    yield from (f"{image.ref}: {each} is not there" for each in image.only if not (root / each).exists())
    yield from (
        f"{image.ref}: the build takes {each}, which Tilt leaves out"
        for each in sorted(copied)
        if not any(each == one or each.startswith(f"{one}/") for one in image.only)
    )
    pod = pods.get(image.target)
    if pod is None:
        yield f"{image.ref}: no workload is called {image.target}"
        return
    yield from _of_container(root, image, pod, _ENTRYPOINT.findall(stage))
    yield from _of_update(root, tree, image, pod)


def _of_container(root: Path, image: Image, pod: dict[str, Any], entry: list[str]) -> Iterator[str]:
    (container,) = pod["spec"]["template"]["spec"]["containers"]
    keep = (root / "tilt/keep.sh").read_text()
    command: list[str] = container.get("command", [])
    if [command[:4], command[4:5]] != [["sh", "-c", keep, "keep"], entry]:
        yield f"{image.ref}: its container runs {command[4:5]} by keep.sh, and its image runs {entry}"
    if not container["image"].startswith(f"{image.ref}:"):
        yield f"{image.ref}: the workload's container has the image {container['image']}"
    volume = next((each["mountPath"] for each in container["volumeMounts"] if each["name"] == "source"), None)
    there = [each for each in pod["spec"]["template"]["spec"]["volumes"] if each["name"] == "source"]
    if command[5:] != [volume] or [sorted(each) for each in there] != [["emptyDir", "name"]]:
        yield f"{image.ref}: keep.sh runs what lies in {command[5:]}, and the volume that can be written is at {volume}"


def _of_update(root: Path, tree: Members, image: Image, pod: dict[str, Any]) -> Iterator[str]:
    here = root / "tilt"
    service = _service(image.target)
    kinds = [each["step"] for each in image.live_update]
    if kinds[:1] != ["fall_back_on"] or sorted(kinds) != kinds[:1] + sorted(kinds[1:]) or "run" not in kinds:
        yield f"{image.ref}: live update falls back on nothing, or starts nothing anew"
        return
    own = tree.below(f"weft-{service}")
    wanted = {each.folder for each in tree.by_folder.values() if each.name in own}
    copies = [each for each in image.live_update if each["step"] == "sync"]
    syncs, others = copies[: -len(TOPS)], copies[-len(TOPS) :]
    from_where = {_path(here, each["from"]) for each in syncs}
    if {root / each / "src" for each in wanted} != from_where:
        given = {path.parent.relative_to(root).as_posix() for path in from_where}
        yield f"{image.ref}: {service} stands on {sorted(wanted ^ given)} or not, and live update has it otherwise"
    (container,) = pod["spec"]["template"]["spec"]["containers"]
    mounts = {each["mountPath"] for each in container["volumeMounts"] if each["name"] == "source"}
    yield from (f"{image.ref}: {each['to']} is no volume" for each in syncs if {each["to"]} != mounts)
    rest = {(_path(here, each["from"]), each["to"]) for each in others}
    if rest != {(root / top, f"{mount}/.others") for top in TOPS for mount in mounts}:
        yield f"{image.ref}: what is another service's, or a test, has the image built anew"
    locks = {_path(here, each) for each in image.live_update[0]["files"]}
    made_of = {
        root / "pyproject.toml",
        root / "requirements.lock",
        *(root / each / "pyproject.toml" for each in wanted),
    }
    if locks != made_of:
        yield f"{image.ref}: what the environment is made of is not what live update falls back on"
    yield from _of_restarts(root, image, service)


def _of_restarts(root: Path, image: Image, service: str) -> Iterator[str]:
    """Who starts anew for a file is who `weft dev` starts anew for it."""
    runs = [
        (each["command"], [os.path.normpath(f"tilt/{one}") for one in each["trigger"]])
        for each in image.live_update
        if each["step"] == "run"
    ]
    for name in _sources(root):
        told = [command for command, triggers in runs if not triggers or _below_one(name, triggers)]
        whole = any(command.startswith("touch ") and "-TERM" in command for command in told)
        by_dev = _by_dev(root, name)
        if service == affected.WORKER:
            meant = (by_dev.workers, by_dev.workers or by_dev.agents)
        else:
            meant = (service in by_dev.services,) * 2
        if (whole, bool(told)) != meant:
            how = "all of it" if whole else "a part of it" if told else "nothing of it"
            yield f"{image.ref}: {name} starts {how} anew, and `weft dev` has it otherwise"
            return


@functools.cache
def _tree(root: Path) -> Members:
    return members.read(root)


@functools.cache
def _by_dev(root: Path, name: str) -> Affected:
    """Whom `weft dev` starts anew for a file."""
    return affected.affected(_tree(root), [name])


@functools.cache
def _refused(words: tuple[str, ...]) -> str:
    """Why the command line takes no such words; empty where it does."""
    asked = CliRunner().invoke(app, [*words, "--help"])
    return asked.output.strip().splitlines()[-1] if asked.exit_code else ""


def _path(folder: Path, name: str) -> Path:
    """What a Tiltfile in a folder calls so; links stay."""
    return Path(os.path.normpath(folder / name))


@functools.cache
def _sources(root: Path) -> list[str]:
    """Every source of a member, its tests too, from the root on."""
    found = (file for top in TOPS for file in sorted((root / top).glob("*/*/**/*.py")))
    return [file.relative_to(root).as_posix() for file in found]


def _below_one(name: str, folders: list[str]) -> bool:
    return any(name == each or name.startswith(f"{each}/") for each in folders)


def _of_missing_images(found: Declared, pods: dict[str, Any]) -> Iterator[str]:
    built = {each.ref for each in found.images}
    for name, pod in pods.items():
        for container in pod["spec"]["template"]["spec"]["containers"]:
            ref = container["image"].rpartition(":")[0]
            if ref.startswith(OURS) and ref not in built:
                yield f"{name} runs {ref}, which nobody builds"


def _of_resources(root: Path, found: Declared, pods: dict[str, Any]) -> Iterator[str]:
    names = [*(each.name for each in found.workloads), *(each.name for each in found.locals)]
    yield from (
        f"two resources are called {name}" for name in sorted({each for each in names if names.count(each) > 1})
    )
    yield from (f"{name} is a workload without a resource" for name in sorted(pods.keys() - set(names)))
    objects = {f"{each['metadata']['name']}:{each['kind'].lower()}" for each in found.objects}
    for each in found.workloads:
        if not each.objects and each.name not in pods:
            yield f"{each.name}: the manifests have no such workload"
        yield from (f"{each.name}: the manifests have no {one}" for one in each.objects if one not in objects)
        forwarded = {one.partition(":")[0] for one in each.port_forwards}
        yield from (
            f"{each.name}: {one} leads to no port that is forwarded"
            for one in each.links
            if re.sub(r"^https://localhost:(\d+).*$", r"\1", one) not in forwarded
        )
        for one in each.port_forwards:
            (container,) = pods[each.name]["spec"]["template"]["spec"]["containers"]
            if int(one.rpartition(":")[2]) not in [port["containerPort"] for port in container["ports"]]:
                yield f"{each.name}: its container has no port {one.rpartition(':')[2]}"
    first = {each.name: set(each.resource_deps) for each in (*found.workloads, *found.locals)}
    yield from (f"{name} waits for {each}, which isn't there" for name in first for each in first[name] - first.keys())
    done: set[str] = set()
    while ready := {name for name, needs in first.items() if name not in done and needs <= done}:
        done |= ready
    yield from (f"{name} waits for ever" for name in sorted(first.keys() - done))


def _of_command(root: Path, local: Local, found: Declared) -> Iterator[str]:
    if not local.commands:
        yield f"{local.name} does nothing"
    yield from (f"{local.name} runs in {each}" for each in local.folders if _path(root / "tilt", each) != root)
    namespaces = {each["metadata"]["name"] for each in found.objects if each["kind"] == "Namespace"}
    for command in local.commands:
        words = [each.split() for each in _WEFT.findall(command)]
        for each in words:
            if refusal := _refused(tuple(each)):
                yield f"{local.name}: `weft {' '.join(each)}` is no command: {refusal}"
            paths = [one for one in each if each[0] == "test" and one.startswith("services/")]
            yield from (f"{local.name}: {one} is not there" for one in paths if not (root / one / "tests").is_dir())
        if not words and not _OF_KUBECTL.search(command):
            yield f"{local.name}: nobody knows what `{command}` does"
        yield from (f"{local.name}: {one} is no namespace" for one in set(_OF_KUBECTL.findall(command)) - namespaces)
        for pod in re.findall(r"delete pod (\S+)-0\b", command):
            if not any(one["kind"] == "StatefulSet" and one["metadata"]["name"] == pod for one in found.objects):
                yield f"{local.name}: there is no pod {pod}-0"


def _of_buttons(tree: Members, found: Declared) -> Iterator[str]:
    buttons = [each for each in found.locals if each.by_hand]
    yield from (f"{each.name} runs by itself" for each in found.locals if not each.by_hand and each.name != "keys")
    commands = " \n".join(command for each in buttons for command in each.commands)
    wanted = ["./weft deploy ", "./weft events --follow", "delete pod "]
    wanted += [f"./weft test services/{each.service} " for each in tree.by_folder.values() if each.service]
    yield from (f"no button does `{each.strip()}`" for each in wanted if each not in f"{commands} ")


def _service(image: str) -> str:
    return affected.WORKER if image == "worker" else image
