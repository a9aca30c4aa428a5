"""What docs/alerts.md tells people to type is there to be typed."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from weft_cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "alerts.md"
COMMANDS = sorted(set(re.findall(r"`weft ([a-z][^`]*)`", PAGE.read_text())))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_the_page_names_is_one_with_those_options(line: str) -> None:
    command: Any = get_command(app)
    words = line.split()
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command = inner[words.pop(0)]
    assert words != line.split(), f"there is no `weft {line}`"
    assert {word for word in words if word.startswith("--")} <= {name for each in command.params for name in each.opts}
    if hasattr(command, "commands"):
        assert [] == words, f"`weft {line}` is no command of {command.name}"


def test_the_page_names_commands() -> None:
    assert len(COMMANDS) > 15
