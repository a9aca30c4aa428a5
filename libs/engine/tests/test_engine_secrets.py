"""Secrets as an engine host hears of them: through its pipe, at any time, and in nothing that it says."""

import json
import os
import threading
from collections.abc import Iterator

import pytest
from weft_engine import secrets

NAME = "a-key"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_values", {})


@pytest.fixture
def pipe() -> Iterator[int]:
    """The end of a pipe into which an agent writes; the host reads the other."""
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    secrets.receive(reading)
    assert not os.get_inheritable(reading)
    yield writing
    os.close(writing)


def tell(pipe: int, value: object, name: str = NAME) -> None:
    os.write(pipe, json.dumps({"name": name, "value": value}).encode() + b"\n")


def test_a_value_is_resolved_by_its_name_and_by_the_argument_that_names_it(pipe: int) -> None:
    tell(pipe, 'two\nlines, "ä"')
    secrets.wait_for([NAME])
    assert ['two\nlines, "ä"'] * 2 == [secrets.resolved(NAME), secrets.resolved(f"secret:{NAME}")]


def test_what_was_not_given_is_named_and_waited_for_no_longer_than_said() -> None:
    with pytest.raises(secrets.SecretMissing, match="the secret a-key was not given to this replica"):
        secrets.resolved("secret:a-key")
    with pytest.raises(secrets.SecretMissing, match=r"the secret a-key did not come within 0\.01 s"):
        secrets.wait_for([NAME], 0.01)
    secrets.wait_for([])


def test_another_value_counts_from_when_it_comes(pipe: int) -> None:
    tell(pipe, "first")
    secrets.wait_for([NAME])
    assert "first" == secrets.resolved(NAME)
    came = threading.Thread(target=secrets.wait_for, args=(["later"], 30.0))
    came.start()
    tell(pipe, "second")
    tell(pipe, "x", "later")
    came.join(30.0)
    assert "second" == secrets.resolved(NAME)


@pytest.mark.parametrize("line", [b"open sesame", b"[]", b'{"name": "a-key"}', b"null", b"\xff"])
def test_a_line_that_is_no_secret_is_passed_over_and_not_shown(
    pipe: int, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    os.write(pipe, line + b"\n")
    tell(pipe, "value")
    secrets.wait_for([NAME])
    assert "a secret can't be read" in caplog.text
    assert "sesame" not in caplog.text
    assert "value" not in caplog.text


def test_long_values_come_whole(pipe: int) -> None:
    value = "x" * 200_000
    writing = threading.Thread(target=tell, args=(pipe, value))
    writing.start()
    secrets.wait_for([NAME])
    writing.join(30)
    assert value == secrets.resolved(NAME)
