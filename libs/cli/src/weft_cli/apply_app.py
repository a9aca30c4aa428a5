"""`weft apply`, declared. What it does is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.options import JsonOption, StateOption, UrlOption


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML: `models`, `aliases`, `policies`.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would change; exit status 2 where anything would.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask; needed where nobody can be asked.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove what the file doesn't name, of the sections that it has.")
    ] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until all its models answer; 0: not.")] = 0.0,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the mesh what a file says: models, aliases, policies."""
    from weft_cli.commands import apply as command

    command.run(state, url, file, command.ApplyOptions(dry_run, yes, prune, wait, as_json))
