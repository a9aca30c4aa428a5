"""What a host is told, and what it refuses to be told."""

import io
import json
from pathlib import Path

import pytest
from weft_engine.launch import BadLaunch, Launch

from .engine_hosts import launch_fields

GOOD = launch_fields()


def test_a_launch_is_read_from_a_file_or_a_line(tmp_path: Path) -> None:
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(GOOD))

    from_file = Launch.read(str(file), io.StringIO())
    from_line = Launch.read("-", io.StringIO(json.dumps(GOOD) + "\nmore"))

    assert from_file == from_line
    assert (1, 0, "127.0.0.1") == (from_file.threads, from_file.port, from_file.host)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"concurrency": 0}, "concurrency: input should be greater than or equal to 1, not '0'"),
        ({"engine": "V room"}, "engine: string should match pattern"),
        ({"colour": "red"}, "colour: extra inputs are not permitted"),
        ({"replica": None}, "replica: input should be a valid string"),
    ],
)
def test_a_wrong_launch_is_refused_with_the_place_of_its_fault(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    file = tmp_path / "launch.json"
    file.write_text(json.dumps({**GOOD, **change}))

    with pytest.raises(BadLaunch, match=words):
        Launch.read(str(file), io.StringIO())


def test_a_launch_that_is_no_json_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "launch.json").write_text("{")

    with pytest.raises(BadLaunch, match="the launch is no JSON"):
        Launch.read(str(tmp_path / "launch.json"), io.StringIO())
    with pytest.raises(BadLaunch, match="the launch file can't be read"):
        Launch.read(str(tmp_path / "absent.json"), io.StringIO())
