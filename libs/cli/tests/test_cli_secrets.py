"""`weft secrets`: a value comes by stdin or unseen, and no output has it."""

from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_contracts.secrets import MOST_BYTES
from weft_testing.fake_gateway import FakeGateway

VALUE = "open sesame"


@pytest.fixture(autouse=True)
def _known(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    fake.otherwise = (200, {"request": "q-1", "secret": "key", "version": "7"})


def weft(line: str, typed: str | bytes = b"") -> Any:
    return CliRunner().invoke(app, line.split(), input=typed)


@pytest.mark.parametrize("typed", [VALUE, f"{VALUE}\n", f"{VALUE}\r\n"])
@pytest.mark.parametrize("more", ["", " --json"])
def test_a_value_is_taken_from_stdin_without_its_lines_end_and_not_shown(
    fake: FakeGateway, typed: str, more: str
) -> None:
    done = weft(f"secrets set key{more}", typed)
    assert (0, [("PUT", "/api/secrets/key", {"value": VALUE})]) == (done.exit_code, fake.asked), done.output
    assert VALUE not in done.output
    assert "key" in done.stdout


def test_what_stands_inside_a_value_stays(fake: FakeGateway) -> None:
    weft("secrets set key", "-----BEGIN-----\n\nä \t\n\n")
    assert [("PUT", "/api/secrets/key", {"value": "-----BEGIN-----\n\nä \t\n"})] == fake.asked


def test_at_a_terminal_it_is_asked_for_unseen(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft_cli.commands import secrets

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    asked: list[str] = []

    def type_it(prompt: str) -> str:
        asked.append(prompt)
        return VALUE

    monkeypatch.setattr("getpass.getpass", type_it)
    secrets.put(None, fake.url, "key", as_json=False)
    assert [("PUT", "/api/secrets/key", {"value": VALUE})] == fake.asked
    assert ["value of key (not shown): "] == asked


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("key", b"", "there is no value"),
        ("key", b"\n", "there is no value"),
        ("key", b"\xff\xfe", "no text in UTF-8"),
        ("key", b"x" * (MOST_BYTES + 1), "more than 32768 bytes"),
        ("a.b", b"x", "can't be a secret's name"),
    ],
)
def test_what_is_no_name_or_value_is_wrong_usage_and_asks_nobody(
    fake: FakeGateway, name: str, typed: bytes, says: str
) -> None:
    failure = weft(f"secrets set {name}", typed).exception
    assert isinstance(failure, Failure)
    assert (Exit.USAGE, True, []) == (failure.exit, says in str(failure), fake.asked)


def test_a_value_is_no_argument() -> None:
    assert int(Exit.USAGE) == weft(f"secrets set key {VALUE}").exit_code


@pytest.mark.parametrize("line", ["secrets", "secrets list"])
def test_secrets_are_listed_by_name_with_what_names_them(fake: FakeGateway, line: str) -> None:
    items = [{"name": "key", "version": 7, "set_at": 0.0, "models": ["mine"]}, {"name": "b", "version": 8}]
    items[1] |= {"set_at": 0.0, "models": []}
    fake.otherwise = (200, {"items": items, "next": None})
    rows = [line.split() for line in weft(line).stdout.splitlines()]
    assert [("key", "mine"), ("b", "model")] == [(row[0], row[-1]) for row in rows[-2:]]


def test_a_removed_one_is_said(fake: FakeGateway) -> None:
    done = weft("secrets remove key")
    assert [("DELETE", "/api/secrets/key", None)] == fake.asked
    assert "there is no secret key any more" in done.stdout
