"""What a bundle holds and what is made of it for a gateway: by digests, the same each time, and nothing unchecked."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from weft_embedded.bundle import making, scripts, served
from weft_embedded.bundle.contents import ABOUT, LOCK, OWN, SUMS, TOOL_LOCK, BadBundle, checked, listed, sums
from weft_embedded.state import State

AUTHORITY = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    for name, text in {
        f"{OWN}/weft_cli-1-py3-none-any.whl": "cli",
        "others/uv-1.whl": "uv",
        "models/m.gguf": "m",
        LOCK: "lock",
        TOOL_LOCK: "tool",
        "install": "#!/bin/sh",
        ABOUT: f"weft 1\nmachine {scripts.machine()}\n",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (made / SUMS).write_text(sums(made))
    return made


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.prepare()
    return made


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    file = tmp_path / "authority.pem"
    file.write_text(AUTHORITY)
    return file


def test_the_list_is_one_that_sha256sum_takes(bundle: Path) -> None:
    done = subprocess.run(["sha256sum", "-c", "--quiet", SUMS], cwd=bundle, capture_output=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert [each.name for each in listed(bundle)] == sorted(each.name for each in checked(bundle))


def other(file: Path) -> None:
    file.write_text("other")


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("damage", "says"),
    [(other, "is not the file that was bundled"), (Path.unlink, "is missing"), (link, "is missing")],
)
def test_a_file_that_is_not_as_it_was_is_named(bundle: Path, damage: Callable[[Path], None], says: str) -> None:
    file = bundle / "others/uv-1.whl"
    damage(file)
    with pytest.raises(BadBundle, match=f"{file} {says}"):
        checked(bundle)


@pytest.mark.parametrize("line", ["", "ab  x", f"{'0' * 64}  ../x", f"{'0' * 64}  /etc/passwd", f"{'0' * 64}  a/../b"])
def test_a_list_that_names_anything_else_is_refused(bundle: Path, line: str) -> None:
    (bundle / SUMS).write_text(f"{line}\n")
    with pytest.raises(BadBundle, match="names no file"):
        listed(bundle)


def test_a_packed_bundle_has_no_time_no_user_and_no_chance_in_it(bundle: Path, tmp_path: Path) -> None:
    making.pack(bundle, tmp_path / "one.tar")
    for each in bundle.rglob("*"):
        each.touch()
    making.pack(bundle, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_a_script_covers_each_file_and_the_authority_by_its_own_digest(
    bundle: Path, state: State, authority: Path
) -> None:
    digest = served.keep(state, authority, bundle)
    text = (state.install / f"{digest}.sh").read_text()
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    assert AUTHORITY.strip() in text
    fetched = {each.name: each.digest for each in listed(bundle) if f"{each.digest}  {each.name}\n" in text}
    assert {f"{OWN}/weft_cli-1-py3-none-any.whl", "others/uv-1.whl", LOCK, TOOL_LOCK, ABOUT} == set(fetched)
    for name, each in fetched.items():
        assert (bundle / name).read_bytes() == (state.install / each / Path(name).name).read_bytes()
    # and it is sh
    assert 0 == subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode
    assert 0 == subprocess.run(["sh", "-n"], input=scripts.beside(), text=True, check=False).returncode


def test_what_is_served_is_made_anew_only_when_something_of_it_changed(
    bundle: Path, state: State, authority: Path
) -> None:
    first = served.keep(state, authority, bundle)
    made = (state.install / f"{first}.sh").stat().st_ino
    assert first == served.keep(state, authority, bundle)
    assert made == (state.install / f"{first}.sh").stat().st_ino
    authority.write_text(AUTHORITY.replace("AAAA", "BBBB"))
    second = served.keep(state, authority, bundle)
    assert second != first
    assert [f"{second}.sh"] == [each.name for each in state.install.glob("*.sh")]
    (bundle / LOCK).write_text("another")
    (bundle / SUMS).write_text(sums(bundle, but=(SUMS,)))
    assert served.keep(state, authority, bundle) != second


def test_a_bundle_that_was_tampered_with_is_not_served(bundle: Path, state: State, authority: Path) -> None:
    (bundle / "others/uv-1.whl").write_text("other")
    with pytest.raises(BadBundle, match=r"uv-1\.whl"):
        served.keep(state, authority, bundle)
    assert not state.install.exists()


def test_only_what_is_served_is_read_at_a_start(bundle: Path, state: State, authority: Path) -> None:
    (bundle / "models/m.gguf").write_text("other")
    assert (state.install / f"{served.keep(state, authority, bundle)}.sh").is_file()


def test_a_launcher_that_was_killed_while_it_laid_out_leaves_nothing(
    bundle: Path, state: State, authority: Path
) -> None:
    first = served.keep(state, authority, bundle)
    # given one that was killed between two steps
    left = state.folder / ".install-abcd"
    state.install.rename(left)
    # then the next one believes no record
    assert first == served.keep(state, authority, bundle)
    assert (state.install / f"{first}.sh").is_file()
    assert not left.exists()


@pytest.mark.parametrize(
    "step", ["find_python", "find_python; machine", 'use "$FOLDER"; unset PYTHONSAFEPATH; "$prefix/bin/weft" --help']
)
def test_nothing_of_the_folder_where_the_script_is_called_runs(bundle: Path, tmp_path: Path, step: str) -> None:
    # given a folder where somebody else may write
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("venv", "ensurepip", "platform", "weft_cli"):
        (theirs / f"{name}.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w')\n")
    # and an environment that was installed
    python = tmp_path / "version/venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    functions = scripts.beside().partition("\nhere=")[0]
    done = subprocess.run(
        ["sh", "-c", f"{functions}\n{step}"],
        cwd=theirs,
        env={
            **os.environ,
            "WEFT_PREFIX": str(tmp_path / "prefix"),
            "WEFT_PYTHON": sys.executable,
            "FOLDER": str(tmp_path / "version"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert 0 == done.returncode, done.stderr
    assert not (tmp_path / "it-ran").exists()


class Releases:
    """A prefix with releases that were installed one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = folder / "prefix"

    def install(self, *names: str, whole: bool = True) -> None:
        """As the script does once a release is there whole."""
        for name in names:
            python = self.prefix / "versions" / name / "venv/bin/python"
            python.parent.mkdir(parents=True, exist_ok=True)
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            python.chmod(0o755)
            if whole:
                (self.prefix / "versions" / name / "whole").touch()
                self._use(name)

    def _use(self, name: str) -> None:
        functions = scripts.beside().partition("\nhere=")[0]
        done = subprocess.run(
            ["sh", "-c", f'{functions}\nuse "$prefix/versions/{name}"'],
            env={"PATH": os.environ["PATH"], "WEFT_PREFIX": str(self.prefix), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (0, "") == (done.returncode, done.stderr)

    @property
    def there(self) -> set[str]:
        """Those that are there; links are none."""
        return {each.name for each in (self.prefix / "versions").iterdir() if not each.is_symlink()}

    def python(self, name: str) -> str:
        return str(self.prefix / "versions" / name / "venv/bin/python")


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    return Releases(tmp_path)


def test_of_releases_the_newest_and_the_one_before_stay(releases: Releases) -> None:
    releases.install("a", "b")
    assert {"a", "b"} == releases.there
    releases.install("b")  # the same line once more
    assert {"a", "b"} == releases.there
    releases.install("c")
    assert {"b", "c"} == releases.there
    assert "c" == os.readlink(releases.prefix / "versions/current")
    assert f'"{releases.python("c")}"' in (releases.prefix / "bin/weft").read_text()
    # and one that was installed again is the newest
    releases.install("b")
    assert ({"b", "c"}, "b") == (releases.there, os.readlink(releases.prefix / "versions/current"))


def test_a_release_that_something_runs_from_stays_until_that_has_ended(releases: Releases) -> None:
    releases.install("a")
    Path(releases.python("a")).write_text("#!/bin/sh\nread end\n")
    with subprocess.Popen([releases.python("a"), "-m", "weft_cli", "worker"], stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        releases.install("b", "c", "d")
        assert {"a", "c", "d"} == releases.there
        worker.stdin.close()
    releases.install("e")
    assert {"d", "e"} == releases.there


def test_a_release_that_a_unit_names_stays_and_so_does_one_that_is_being_installed(releases: Releases) -> None:
    unit = releases.folder / ".config/systemd/user/weft-worker.service"
    unit.parent.mkdir(parents=True)
    releases.install("a")
    unit.write_text(f'ExecStart="{releases.python("a")}" -m weft_cli worker\n')
    releases.install("half", whole=False)
    releases.install("b", "c", "d")
    assert {"a", "half", "c", "d"} == releases.there
    day = 86_400
    os.utime(releases.prefix / "versions/half", (0, 3 * day))
    unit.unlink()
    releases.install("e")
    assert {"d", "e"} == releases.there
