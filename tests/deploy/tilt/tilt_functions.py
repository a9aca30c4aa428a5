"""Tilt as its Tiltfile sees it: runs one in Starlark, with the functions that Tilt gives, and keeps what it declares.

Their parameters are Tilt's own, so that a misspelt one is an error here as there.
"""

import functools
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import starlark
import yaml

KUSTOMIZE_S = 60
MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Image:
    """One `docker_build`."""

    ref: str
    context: str
    dockerfile: str
    target: str
    only: tuple[str, ...]
    live_update: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """One `k8s_resource`."""

    name: str
    objects: tuple[str, ...]
    port_forwards: tuple[str, ...]
    links: tuple[str, ...]
    resource_deps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Local:
    """One `local_resource`."""

    name: str
    commands: tuple[str, ...]
    folders: tuple[str, ...]
    resource_deps: tuple[str, ...]
    by_hand: bool


@dataclass(slots=True)
class Declared:
    """All that a Tiltfile declared."""

    images: list[Image] = field(default_factory=list[Image])
    workloads: list[Workload] = field(default_factory=list[Workload])
    locals: list[Local] = field(default_factory=list[Local])
    objects: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def run(tiltfile: Path) -> Declared:
    """Run a Tiltfile. Raises starlark.StarlarkError, or what a function of Tilt's doesn't take."""
    found = Declared()
    folder = tiltfile.parent
    dialect = starlark.Dialect.extended()
    dialect.enable_top_level_stmt = True
    dialect.enable_f_strings = False  # Tilt's Starlark has none
    module = starlark.Module()
    for name, value in {"TRIGGER_MODE_MANUAL": MANUAL, "TRIGGER_MODE_AUTO": "auto"}.items():
        module[name] = value
    for function in (*_files(folder), *_steps(), *_resources(found)):
        module.add_callable(function.__name__, function)
    syntax = starlark.parse(str(tiltfile), tiltfile.read_text(), dialect)
    starlark.eval(module, syntax, starlark.Globals.standard())
    return found


def _files(folder: Path) -> list[Any]:
    def read_file(path: str, default: str = "") -> str:
        return (folder / path).read_text()

    def kustomize(path: str) -> str:
        return _rendered((folder / path).resolve())

    def decode_yaml_stream(text: str) -> list[Any]:
        return json.loads(_decoded(text))

    def encode_yaml_stream(objects: list[Any]) -> str:
        return json.dumps(objects)  # which is YAML, too, and nobody but `k8s_yaml` reads it

    return [read_file, kustomize, decode_yaml_stream, encode_yaml_stream]


@functools.cache
def _rendered(folder: Path) -> str:
    command = [str(Path(sys.executable).parent / "kubectl"), "kustomize", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=KUSTOMIZE_S).stdout


@functools.cache
def _decoded(text: str) -> str:
    return json.dumps([each for each in yaml.load_all(text, yaml.CSafeLoader) if each is not None])


def _steps() -> list[Any]:
    def fall_back_on(files: list[str]) -> dict[str, Any]:
        return {"step": "fall_back_on", "files": files}

    def sync(local_path: str, remote_path: str) -> dict[str, Any]:
        return {"step": "sync", "from": local_path, "to": remote_path}

    def run(cmd: str, trigger: list[str] | None = None) -> dict[str, Any]:
        return {"step": "run", "command": cmd, "trigger": trigger or []}

    def link(url: str, name: str = "") -> str:
        return url

    return [fall_back_on, sync, run, link]


def _resources(found: Declared) -> list[Any]:
    def docker_build(
        ref: str,
        context: str,
        dockerfile: str = "Dockerfile",
        target: str = "",
        only: list[str] | None = None,
        live_update: list[dict[str, Any]] | None = None,
    ) -> None:
        found.images.append(Image(ref, context, dockerfile, target, tuple(only or ()), tuple(live_update or ())))

    def k8s_yaml(yaml_text: str) -> None:
        found.objects += json.loads(yaml_text)

    def k8s_resource(
        workload: str = "",
        new_name: str = "",
        port_forwards: list[str] | None = None,
        resource_deps: list[str] | None = None,
        objects: list[str] | None = None,
        links: list[str] | None = None,
        labels: list[str] | None = None,
    ) -> None:
        found.workloads.append(
            Workload(
                workload or new_name,
                tuple(objects or ()),
                tuple(port_forwards or ()),
                tuple(links or ()),
                tuple(resource_deps or ()),
            )
        )

    def local_resource(
        name: str,
        cmd: str = "",
        resource_deps: list[str] | None = None,
        trigger_mode: str = "auto",
        auto_init: bool = True,
        serve_cmd: str = "",
        dir: str = "",
        serve_dir: str = "",
        labels: list[str] | None = None,
    ) -> None:
        said = {cmd: dir, serve_cmd: serve_dir}
        said.pop("", None)
        by_hand = trigger_mode == MANUAL and not auto_init
        found.locals.append(Local(name, tuple(said), tuple(said.values()), tuple(resource_deps or ()), by_hand))

    return [docker_build, k8s_yaml, k8s_resource, local_resource]
