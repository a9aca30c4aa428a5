"""Reading a model file ahead."""

from pathlib import Path

import pytest
from weft_engine import warm_file


def test_a_file_is_read_when_it_is_large_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"x" * 10_000)

    assert 0 == warm_file.warm_files([file])

    monkeypatch.setattr(warm_file, "WORTH_BYTES", 5_000)
    monkeypatch.setattr(warm_file, "available_bytes", lambda: 20_000)
    assert 10_000 == warm_file.warm_files([file])

    monkeypatch.setattr(warm_file, "available_bytes", lambda: 19_000)
    assert 0 == warm_file.warm_files([file]), "it would push out what others use"


def test_the_files_of_one_model_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_bytes(b"x" * 6_000)

    monkeypatch.setattr(warm_file, "WORTH_BYTES", 10_000)
    monkeypatch.setattr(warm_file, "available_bytes", lambda: 24_000)
    assert 12_000 == warm_file.warm_files(files)

    monkeypatch.setattr(warm_file, "available_bytes", lambda: 23_000)
    assert 0 == warm_file.warm_files(files), "each alone would fit"
