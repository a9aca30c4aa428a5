"""What `weft found --kubernetes` prints, and how it lies in a pod that mounts it."""

import base64
import json
from pathlib import Path

from typer.testing import CliRunner
from weft_cli.app import app

from .rendered import Objects, Workload, named, of_kind, secret_sources

Files = dict[str, bytes]


def found(folder: Path, *words: str) -> Objects:
    """Its objects."""
    done = CliRunner().invoke(app, ["found", str(folder), "--kubernetes", *words])
    assert 0 == done.exit_code, done.output
    items: Objects = json.loads(done.stdout)["items"]
    return items


def secrets(founded: Objects) -> dict[str, Files]:
    """Files of each Secret, by its name."""
    return {
        each["metadata"]["name"]: {key: base64.b64decode(text) for key, text in each["data"].items()}
        for each in of_kind(founded, "Secret")
    }


def mesh(founded: Objects) -> dict[str, str]:
    """What is said to services and no secret."""
    data: dict[str, str] = named(founded, "ConfigMap", "mesh")["data"]
    return data


def lay_out(of: Workload, pod: str, made: dict[str, Files], root: Path) -> None:
    """Write what the Secrets mount in a pod below a root, with the modes that it has there."""
    volumes = {each["name"]: each for each in of.pod["volumes"]}
    for path, mount in of.mounts.items():
        volume = volumes.get(mount["name"], {})
        part = mount.get("subPathExpr", "").replace("$(POD_NAME)", pod)
        for name, items in secret_sources(volume):
            for key in items if items is not None else made[name]:
                inside = Path(items[key] if items is not None else key)
                if inside.is_relative_to(part):
                    file = root / path.lstrip("/") / inside.relative_to(part)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(made[name][key])
                    source = volume.get("secret") or volume["projected"]
                    file.chmod(source["defaultMode"])


def told(of: Workload, said: dict[str, str], root: Path) -> dict[str, str]:
    """Its variables as the program sees them, with paths below the root."""
    refers = {each["name"]: each["valueFrom"] for each in of.container["env"] if "valueFrom" in each}
    values = {name: value or "" for name, value in of.env.items()}
    values |= {name: said[ref["configMapKeyRef"]["key"]] for name, ref in refers.items() if "configMapKeyRef" in ref}
    return {name: f"{root}{value}" if value.startswith("/") else value for name, value in values.items()}
