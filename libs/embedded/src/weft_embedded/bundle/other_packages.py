"""Wheels of what Weft stands on, for this machine and by the hashes of the lock: found by the installer, as `./weft`
has it find them, and fetched several at a time."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from weft_embedded.bundle.contents import BadBundle

_AT_ONCE = 8
_TRIES = 4
_SILENCE_S = 60.0
_BOUND_S = 900.0
_BLOCK = 1 << 20
_EPOCH = "315532800"


@dataclass(frozen=True, slots=True)
class _File:
    url: str
    digest: str

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


def fetch(lock: Path, folder: Path) -> None:
    """Put a wheel of each locked package into a folder; what there is no wheel of is built. Raises BadBundle."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weft-packages-") as made:
        found = Path(made) / "pylock.toml"
        python = ["--python", sys.executable]
        _uv("pip", "compile", "--no-deps", "--generate-hashes", *python, "--format", "pylock.toml", "--output-file",
            str(found), str(lock))  # fmt: skip
        wheels, sources = _files(tomllib.loads(found.read_text()))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(partial(_get, folder=folder), wheels))
            list(threads.map(partial(_get, folder=Path(made)), sources))
        for each in sources:
            _uv("build", "--wheel", *python, "--out-dir", str(folder), str(Path(made) / each.name))
    for each in folder.iterdir():
        if each.suffix != ".whl":
            each.unlink()  # the installer leaves a .gitignore


def _files(lock: Mapping[str, Any]) -> tuple[list[_File], list[_File]]:
    """Of a lock as the installer writes it: a wheel of each package, or its source where there is none."""
    wheels: list[_File] = []
    sources: list[_File] = []
    for package in lock["packages"]:
        said = package.get("wheels")
        one, to = (said[0], wheels) if said else (package["sdist"], sources)
        url = one.get("url") or Path(one["path"]).absolute().as_uri()
        to.append(_File(url, one["hashes"]["sha256"]))
    return wheels, sources


def _get(file: _File, folder: Path) -> None:
    """Raises BadBundle."""
    left = _TRIES
    while True:
        left -= 1
        try:
            digest = _read(file.url, folder / file.name)
        except (OSError, urllib.error.URLError) as error:
            if not left:
                raise BadBundle(f"{file.name} could not be fetched: {error}") from None
            time.sleep(_TRIES - left)
            continue
        if digest != file.digest:
            raise BadBundle(f"{file.name} is not the file that the lock names")
        return


def _read(url: str, target: Path) -> str:
    found = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer, target.open("wb") as out:
        while block := answer.read(_BLOCK):
            found.update(block)
            out.write(block)
    return found.hexdigest()


def _uv(*words: str) -> None:
    """Raises BadBundle with what it says."""
    import uv  # here: its program is looked for when something is bundled

    done = subprocess.run(
        [str(uv.find_uv_bin()), "--quiet", *words],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(os.environ),
        timeout=_BOUND_S,
    )
    if done.returncode:
        raise BadBundle(f"the packages of others could not be had: {done.stderr.strip()[-500:]}")


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The installer doesn't read pip's settings, which say where packages come from."""
    given = {**environ, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "SOURCE_DATE_EPOCH": _EPOCH}
    links = ",".join(environ.get("PIP_FIND_LINKS", "").split())
    for name, value in {
        "UV_DEFAULT_INDEX": environ.get("PIP_INDEX_URL", ""),
        "UV_INDEX": environ.get("PIP_EXTRA_INDEX_URL", ""),
        "UV_FIND_LINKS": links,
        "SSL_CERT_FILE": environ.get("PIP_CERT", ""),
    }.items():
        if value:
            given.setdefault(name, value)
    return given
