"""Wheels for tests of installing: written anew, or packed again from what is installed here. No index is asked."""

import base64
import hashlib
import importlib.metadata
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    requires: Iterable[str] = (),
    *,
    entry_points: str = "",
) -> Path:
    """A wheel of pure Python with these files; its path."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    tag = "py3-none-any"
    held = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    held[f"{about}/METADATA"] = "\n".join((*metadata, "")).encode()
    held[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    if entry_points:
        held[f"{about}/entry_points.txt"] = entry_points.encode()
    return _packed(folder / f"{name.replace('-', '_')}-{version}-{tag}.whl", about, held)


def wheels_of_installed(folder: Path, requirements: Iterable[str]) -> None:
    """Wheels of what is installed here for these requirements, and of all that those need."""
    waiting, seen = [_name(each) for each in requirements], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system, or for an extra
        waiting += [_name(each) for each in found.requires or () if "extra ==" not in each]
        _pack_again(folder, found)


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return found[0]


def _pack_again(folder: Path, found: importlib.metadata.Distribution) -> None:
    held: dict[str, bytes] = {}
    for file in found.files or ():
        path = str(file)
        if not path.startswith("..") and "__pycache__" not in path and Path(str(file.locate())).is_file():
            held[path] = Path(str(file.locate())).read_bytes()
    about = next(path.partition("/")[0] for path in held if path.endswith(".dist-info/METADATA"))
    for left in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
        held.pop(f"{about}/{left}", None)
    lines = held[f"{about}/WHEEL"].decode().splitlines()
    tags = [line.partition(":")[2].strip().split("-") for line in lines if line.startswith("Tag:")]
    parts = (".".join(dict.fromkeys(tag[at] for tag in tags)) for at in range(3))
    _packed(folder / f"{about.removesuffix('.dist-info')}-{'-'.join(parts)}.whl", about, held)


def _packed(path: Path, about: str, held: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in held.items()]
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in held.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{about}/RECORD", "".join((*record, f"{about}/RECORD,,\n")))
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
