"""A machine without Weft joins a mesh that has no bundle: Weft's own packages come from the gateway, those of others
from a package index, and of both only what the mesh's line and locks name."""

import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from weft_embedded.bundle import own_packages
from weft_testing.lan import wired
from weft_testing.story import until
from weft_testing.wheels import write_wheel

from . import package_index
from .bare_machines import INSTALL_S, Bare, Changed

pytestmark = pytest.mark.slow
FIRST, SECOND = "gate", "late"


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Bare]:
    with wired(FIRST, SECOND) as lan, ExitStack() as stack:
        yield Bare(lan, tmp_path, stack)


@pytest.mark.sabotage("unlocked-packages")
def test_a_machine_joins_by_the_line_with_packages_of_an_index_and_takes_none_that_the_lock_does_not_name(
    bare: Bare,
) -> None:
    # given a mesh of a source tree, which serves its own packages alone
    tree = own_packages.installation().tree
    assert tree is not None
    mesh = bare.serve(FIRST, Path(sys.executable))
    served = mesh.state / "install"
    assert list(served.glob("*/weft_cli-*.whl"))
    assert not list(served.glob("*/uvicorn-*"))
    line = bare.line()
    # and a machine that knows a package index
    index = bare.folder / "index"
    package_index.filled(tree, index)
    known = {"PIP_INDEX_URL": package_index.URL}
    with package_index.served(bare.lan[SECOND], index):
        # when the index has another file of a name and version that the lock has
        wheel = next((index / "files").glob("uvicorn-*.whl"))
        page = index / "simple" / "uvicorn" / "index.html"
        foul = {"uvicorn/__init__.py": "raise SystemExit('it ran what nobody named')\n"}
        other = write_wheel(bare.folder / "foul", "uvicorn", wheel.name.split("-")[1], foul).read_bytes()
        with Changed(wheel, other), Changed(page, re.sub(rb"#sha256=\w+", b"", page.read_bytes())):
            done = bare.run(SECOND, ["sh", "-c", line], **known)
        # then nothing is installed
        assert 0 != done.returncode
        assert "Hash mismatch for `uvicorn" in done.stderr
        assert not list(bare.prefix(SECOND).glob("bin/*"))
        # and when it has what the lock names, the line goes on from there
        log = bare.folder / "late.log"
        with bare.pasted(SECOND, line, log, **known) as shell:
            name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())

            def node() -> dict[str, Any]:
                ended = shell.poll()
                assert ended is None, log.read_text(errors="replace")[-3000:]
                return next((each for each in mesh.status()["nodes"] if each["name"] == name), dict[str, Any]())

            until("it asks to join", node, INSTALL_S)
            assert 0 == mesh.weft("nodes", "approve", name).returncode
            until("it is healthy", lambda: node()["state"] == "healthy", 60)
