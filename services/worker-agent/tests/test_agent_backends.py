"""Engines in environments of their own: found, asked for their version, and said when they can't be used."""

import sys
from pathlib import Path

import pytest
from weft_worker_agent.outbound.machine import inventory
from weft_worker_agent.outbound.machine.backends import environments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for engine in ("simulated", "llama.cpp", "vllm"):
        (tmp_path / engine / "bin").mkdir(parents=True)
    return tmp_path


def test_an_engine_with_an_environment_of_its_own_is_reported_in_that_version(folder: Path) -> None:
    # given
    python = folder / "simulated" / "bin" / "python"
    python.write_text("#!/bin/sh\necho 7.8.9\n")
    python.chmod(0o755)
    # when
    found = environments(folder)
    # then
    assert {"simulated": str(python)} == {name: it.python for name, it in found.found.items()}
    assert () == found.wrong
    assert "7.8.9" == next(b.version for b in inventory.backends((), found.found) if b.engine == "simulated")


def test_an_environment_without_its_engine_is_named_with_what_to_install(folder: Path) -> None:
    python = folder / "llama.cpp" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    found = environments(folder)
    assert not found.found
    (sentence,) = found.wrong
    assert f"{python} can't be used for llama.cpp: install weft-engine and xllamacpp there (" in sentence


def test_without_a_folder_there_are_none() -> None:
    assert not environments(None).found
