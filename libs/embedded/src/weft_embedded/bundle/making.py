"""Makes a bundle: everything that a machine without a network is installed from. The same tree gives the same bytes."""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from weft_embedded.bundle import other_packages, own_packages, scripts
from weft_embedded.bundle.contents import ABOUT, INSTALL, LOCK, MODELS, OTHERS, SUMS, BadBundle, checked, sums

_EPOCH = 315532800
"""1980: as far back as a wheel's times go."""


def make(folder: Path, models: Sequence[Path]) -> None:
    """Fill a new folder. Raises BadBundle: it is there, a model isn't, packages can't be had."""
    if folder.exists():
        raise BadBundle(f"{folder} is there already: name another, or move it away")
    for each in models:
        if not each.is_file():
            raise BadBundle(f"there is no file {each}")
    if len({each.name for each in models}) < len(models):
        raise BadBundle("two models have files of the same name")
    source = own_packages.installation()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".bundle-") as made:
        fresh = Path(made) / "bundle"
        fresh.mkdir()
        own_packages.put(source, fresh)
        _put_others(source, fresh)
        for each in models:
            (fresh / MODELS).mkdir(exist_ok=True)
            shutil.copyfile(each, fresh / MODELS / each.name)
        (fresh / ABOUT).write_text(f"weft {version('weft-embedded')}\nmachine {scripts.machine()}\n")
        (fresh / INSTALL).write_text(scripts.beside())
        (fresh / SUMS).write_text(sums(fresh))
        for each in sorted(fresh.rglob("*")):
            each.chmod(0o755 if each.is_dir() or each.name == INSTALL else 0o644)
        fresh.chmod(0o755)
        os.rename(fresh, folder)


def pack(folder: Path, file: Path) -> None:
    """Write a bundle's folder as one file, without times, users and chance in it. Raises BadBundle, OSError."""
    checked(folder)
    top = f"weft-{version('weft-embedded')}-{scripts.machine()}"
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as tar:
        for each in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            tar.add(each, f"{top}/{each.relative_to(folder).as_posix()}", recursive=False, filter=_plain)


def _plain(about: tarfile.TarInfo) -> tarfile.TarInfo:
    about.uid = about.gid = 0
    about.uname = about.gname = "root"
    about.mtime = _EPOCH
    return about


def _put_others(source: own_packages.Installation, folder: Path) -> None:
    """Wheels of what Weft stands on, by the hashes of the lock, for this machine."""
    if source.bundle is not None:
        if not (source.bundle / OTHERS).is_dir():
            raise BadBundle(
                "this Weft was installed without the packages of others that it stands on: bundle from a source tree"
            )
        shutil.copytree(source.bundle / OTHERS, folder / OTHERS)
        return
    other_packages.fetch(folder / LOCK, folder / OTHERS)
