"""The group of all commands: lists them in sections, and hands on a broken pipe."""

from typing import Any

from typer.core import TyperGroup
from weft_client import command_names
from weft_client.command_names import SECTIONS

from weft_cli.output import ReaderGone


class CommandGroup(TyperGroup):
    """Lists the commands in sections; hands on a broken pipe, to which typer would give a status of its own."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of their sections."""
        return [name for _, names in SECTIONS for name in names if name in self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One list for each section, all of one width."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS:
            limit = formatter.width - 6 - width
            rows = [
                (f"{name:<{width}}", self.commands[name].get_short_help_str(limit))
                for name in names
                if name in self.commands
            ]
            with formatter.section(title):
                formatter.write_dl([(name, command_names.pasteable(says)) for name, says in rows])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise ReaderGone from e
