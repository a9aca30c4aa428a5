"""keep.sh, which runs each service under Tilt, by the very commands of its live update."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TILT = Path(__file__).resolve().parents[3] / "tilt"
ANEW = 'touch {0}/.anew && kill -TERM "$(cat {0}/.process)"'
SERVICE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("{word}", os.getpid(), *sys.path[1:2], flush=True)
while True:
    time.sleep(60)
"""
_BOUND_S = 30.0


class Kept:
    """A service that keep.sh runs, in an environment of its own, from a folder that live update writes to."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source"
        self.source.mkdir()
        self._log = folder / "log"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        (site,) = (folder / "env").glob("lib/python*/site-packages")
        (site / "weft_small").mkdir()
        (site / "weft_small" / "__main__.py").write_text(SERVICE.format(word="first"))
        (site / "weft_small-1.dist-info").mkdir()
        env = {**os.environ, "PATH": f"{folder / 'env/bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        keep = (TILT / "keep.sh").read_text()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", keep, "keep", "weft_small", str(self.source)], env=env, stdout=log, stderr=log
            )

    def save(self, text: str) -> None:
        (self.source / "weft_small" / "__main__.py").write_text(text)

    def anew(self) -> None:
        subprocess.run(["sh", "-c", ANEW.format(self.source)], check=True)

    def said(self, word: str) -> list[str]:
        """The last line that begins so. Raises AssertionError where none comes."""
        return until(lambda: [line.split() for line in self._log.read_text().splitlines() if line.startswith(word)])[-1]


def until(look: Callable[[], list[list[str]]]) -> list[list[str]]:
    deadline = time.monotonic() + _BOUND_S
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
    return found


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    one = Kept(tmp_path)
    yield one
    one.process.kill()
    one.process.wait(_BOUND_S)


def test_the_commands_are_those_of_the_tiltfile() -> None:
    said = (TILT / "Tiltfile").read_text()
    assert f"ANEW = '{ANEW.replace('{0}', '%s')}' % (SOURCE, SOURCE)" in said


def test_a_saved_file_starts_the_service_anew_and_a_broken_one_waits_for_the_next(kept: Kept) -> None:
    # given the image's code, which runs from the folder
    _, first, path = kept.said("first")
    assert str(kept.source) == path
    assert ["weft_small"] == [each.name for each in kept.source.glob("weft_*")]
    # when
    kept.save(SERVICE.format(word="second"))
    kept.anew()
    # then
    _, second, _ = kept.said("second")
    assert first != second
    # when what is saved can't be read, then it is told, and it is tried again
    kept.save("def (:\n")
    kept.anew()
    kept.said("SyntaxError")
    kept.save(SERVICE.format(word="third"))
    _, third, _ = kept.said("third")
    # when the container is told to end, then its service is, and its status is the service's
    kept.process.send_signal(signal.SIGTERM)
    assert 5 == kept.process.wait(_BOUND_S)
    with pytest.raises(ProcessLookupError):
        os.kill(int(third), 0)


def test_a_container_that_is_started_again_goes_on_with_what_was_saved(kept: Kept, tmp_path: Path) -> None:
    kept.said("first")
    # Longer than what was there: Python tells compiled sources apart by size and second.
    kept.save(SERVICE.format(word="saved-later"))
    kept.process.send_signal(signal.SIGTERM)
    kept.process.wait(_BOUND_S)
    env = {**os.environ, "PATH": f"{tmp_path / 'env/bin'}:{os.environ['PATH']}"}
    keep = (TILT / "keep.sh").read_text()
    with subprocess.Popen(
        ["sh", "-c", keep, "keep", "weft_small", str(kept.source)], env=env, stdout=subprocess.PIPE, text=True
    ) as again:
        assert again.stdout is not None
        try:
            said = again.stdout.readline()
            again.send_signal(signal.SIGTERM)
            assert 5 == again.wait(_BOUND_S)
        finally:
            again.kill()
    assert "saved-later" == said.split()[0]
