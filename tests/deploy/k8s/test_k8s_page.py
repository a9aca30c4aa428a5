"""What the page tells people to type is there: commands, options, overlays, objects."""

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from weft_cli.app import app

from .rendered import MANIFESTS, OVERLAYS, Objects, render, rendered, workloads

PAGE = (MANIFESTS / "README.md").read_text()
COMMANDS = sorted(
    {
        line.partition("|")[0].partition("#")[0].partition(">")[0].strip()
        for line in (
            *re.findall(r"^(?:weft|kubectl) .*$", PAGE, re.MULTILINE),
            *re.findall(r"`((?:weft|kubectl) [^`]+)`", PAGE),
        )
    }
)


def unknown(line: str) -> list[str]:
    """What of a command of ours isn't there."""
    _, *words = shlex.split(line.rstrip("&"))
    at: Any = typer.main.get_command(app)
    while words and words[0] in getattr(at, "commands", {}):
        at = at.commands[words.pop(0)]
    options = {name for each in at.params for name in each.opts}
    lacking = [word for word in words if word.startswith("--") and word not in options]
    return lacking if not hasattr(at, "commands") else [f"{line}: no such command"]


def absent(line: str, objects: Objects) -> list[str]:
    """What of ours kubectl is told to work on and isn't there."""
    kinds = {each["kind"].lower(): set[str]() for each in objects}
    for each in objects:
        kinds[each["kind"].lower()].add(each["metadata"]["name"])
    named = re.findall(r"\b([a-z]+)/([a-z-]+)(?= |$)", line)
    folders = re.findall(r"-k (\S+)", line)
    claims = [re.sub(r"-\d+$", "", each) for each in re.findall(r"pvc (\S+)", line)]
    made = {
        f"{claim['metadata']['name']}-{each['metadata']['name']}"
        for each in objects
        for claim in each.get("spec", {}).get("volumeClaimTemplates", [])
    }
    return [
        *(f"{kind}/{name}" for kind, name in named if kind in kinds and name not in kinds[kind]),
        *(folder for folder in folders if not (MANIFESTS.parents[1] / folder / "kustomization.yaml").exists()),
        *(claim for claim in claims if claim not in made),
    ]


@pytest.mark.parametrize("line", [each for each in COMMANDS if each.startswith("weft")])
def test_a_command_of_ours_takes_what_the_page_types(line: str) -> None:
    assert [] == unknown(line)
    assert ["--nobody"] == unknown(f"{line} --nobody")


@pytest.mark.parametrize("line", [each for each in COMMANDS if each.startswith("kubectl")])
def test_kubectl_is_told_of_what_there_is(line: str) -> None:
    assert [] == absent(line, render("production"))


def test_who_names_what_there_is_not_is_seen() -> None:
    objects = render("production")
    assert ["deployment/registrar"] == absent("kubectl -n weft rollout restart deployment/registrar", objects)
    assert ["deploy/k8s/overlays/gpu"] == absent("kubectl apply -k deploy/k8s/overlays/gpu", objects)
    assert ["keys-worker"] == absent("kubectl -n weft delete pvc keys-worker-7", objects)


def test_an_overlay_of_ones_own_says_where_images_are(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    here = os.path.relpath(MANIFESTS / "overlays" / "production", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(example.replace("../production", here))
    images = {each.part: each.container["image"] for each in workloads(rendered(tmp_path))}
    assert ("registry.example.org/weft/gateway:0.1.0", "weft/registry:0.1.0") == (images["gateway"], images["registry"])


def test_the_page_has_each_overlay() -> None:
    assert set(OVERLAYS) == set(re.findall(r"^\| `overlays/([a-z]+)` \|", PAGE, re.MULTILINE))
