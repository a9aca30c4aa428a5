"""Cuts a lock for each target of the Containerfile out of requirements.lock: what it needs, with hashes, and no more.

    cut_locks.py UV TARGETS LOCK OWN OUT

OWN holds this tree's wheels. What all targets need comes into `common.txt`, the rest of each into `<target>.txt`, and
all of one that is built on another base into `<target>-whole.txt`. A lock names its wheels by their hashes, and by one
what installs them, so a layer that is made of it is made anew exactly when one of them differs. uv says what needs
what; versions and hashes of third parties are those of requirements.lock alone.
"""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import packages

COMMON = "common"
INSTALLER = ("install.py", "packages.py", "build-constraints.txt")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.IGNORECASE)


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: str) -> dict[str, str]:
    """Each distribution's lines of a lock, by its name; one that depends on the platform may have several."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        if begins := _NAME.match(line):
            name = normal(begins[0])
        if name and line.strip() and not line.startswith("#"):
            found[name] = found.get(name, "") + line
    return found


def own_blocks(wheels: Path) -> dict[str, tuple[str, Path]]:
    """The line of each of this tree's wheels, as a lock has it, and where it lies."""
    found: dict[str, tuple[str, Path]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        found[normal(name)] = (f"{normal(name)}=={version} \\\n    --hash=sha256:{digest}\n", wheel)
    return found


def needed(uv: str, wanted: list[str], constraints: Path, own: dict[str, tuple[str, Path]]) -> set[str]:
    """Names of all that these need on this platform. Raises SystemExit with uv's words."""
    # This tree's by their files, so that no index is asked for a name of theirs.
    lines = [re.sub(r"^([a-z-]+)(.*)$", lambda m: f"{m[0]} @ {own[m[1]][1].as_uri()}", each) for each in wanted]
    asked = [uv, "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--python", sys.executable]
    done = subprocess.run(
        [*asked, *packages.flags(), "--constraints", str(constraints), "-"],
        input="\n".join(lines),
        env=packages.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(wanted)}: {done.stderr}")
    return {normal(found[0]) for line in done.stdout.splitlines() if (found := _NAME.match(line))}


def main(uv: str, targets: Path, lock: Path, wheels: Path, out: Path) -> None:
    """Write the locks of all targets."""
    own = own_blocks(wheels)
    lines = blocks(lock.read_text()) | {name: line for name, (line, _) in own.items()}
    constraints = out / "constraints.txt"
    out.mkdir(parents=True, exist_ok=True)
    constraints.write_text(lock.read_text() + "".join(f"{name} @ {file.as_uri()}\n" for name, (_, file) in own.items()))
    needs = {
        target: needed(uv, wanted, constraints, own) for target, wanted in tomllib.loads(targets.read_text()).items()
    }
    constraints.unlink()
    installer = hashlib.sha256(b"".join(Path(__file__).with_name(each).read_bytes() for each in INSTALLER)).hexdigest()
    common = set[str].intersection(*needs.values())
    for file, names in {
        COMMON: common,
        **{target: names - common for target, names in needs.items()},
        **{f"{target}-whole": names for target, names in needs.items()},
    }.items():
        if lacking := sorted(names - set(lines)):
            raise SystemExit(f"{lock.name} lacks {', '.join(lacking)}, which {file} needs")
        (out / f"{file}.txt").write_text(
            "".join([f"# installer {installer}\n", *(lines[name] for name in sorted(names))])
        )


if __name__ == "__main__":
    main(sys.argv[1], *(Path(each).absolute() for each in sys.argv[2:]))
