"""The page for operators says what is so: its commands are commands, an upgrade's order is the one that was tried."""

import re
import shlex

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_contracts.catalogue import SERVICES
from weft_testing.founded_mesh import ORDER

from ..integration.operating_page import PAGE, upgrade_order

_INLINE = re.compile(r"`(weft [a-z][^`]*)`")
_LINE = re.compile(r"^\$ (weft .*)$", re.MULTILINE)
COMMANDS = sorted({*_INLINE.findall(PAGE.read_text()), *_LINE.findall(PAGE.read_text())})
"""As people type them; words in capitals stand for something of theirs."""


def refused(line: str) -> str:
    """What is wrong with a command and its options, by the command line itself, which only shows its help here."""
    done = CliRunner().invoke(app, [*shlex.split(line)[1:], "--help"])
    return "" if done.exit_code == 0 else done.output


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_on_the_page_for_operators_is_one(line: str) -> None:
    assert "" == refused(line)


def test_a_command_or_an_option_that_there_is_not_is_noticed() -> None:
    assert 10 < len(COMMANDS)
    for line in ("weft models", "weft nodes remove worker-2 --forced", "weft keys evoke app"):
        assert refused(line)


def test_an_upgrade_goes_in_the_order_that_the_story_tries() -> None:
    assert ORDER == upgrade_order()
    assert {*SERVICES, "worker"} == {*ORDER}
