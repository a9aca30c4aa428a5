"""Reading a model file ahead."""

from pathlib import Path

import pytest
from weft_engine import warm_file


def test_a_file_is_read_when_it_is_large_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"x" * 10_000)

    assert 0 == warm_file.warm_file(file)

    monkeypatch.setattr(warm_file, "WORTH_BYTES", 5_000)
    monkeypatch.setattr(warm_file, "available_bytes", lambda: 20_000)
    assert 10_000 == warm_file.warm_file(file)

    monkeypatch.setattr(warm_file, "available_bytes", lambda: 19_000)
    assert 0 == warm_file.warm_file(file), "it would push out what others use"
