"""The developers' commands, declared: names, options, help."""

from typing import Annotated

import typer


def declare(app: typer.Typer) -> None:
    """Add them to the command line of a source tree."""
    app.command("test")(check)
    app.command()(lint)


def check(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATHS]", help="Only these tests, or sabotages.")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="The slow tests, and only those.")] = False,
    sabotage: Annotated[bool, typer.Option("--sabotage", help="Break what each story tests; it must notice.")] = False,
    share: Annotated[str | None, typer.Option(metavar="K/N", help="With --sabotage: the K-th of N parts.")] = None,
    seed: Annotated[str, typer.Option(help="With --share: what the parts are drawn by.")] = "",
    listing: Annotated[bool, typer.Option("--list", help="With --sabotage: list the stories.")] = False,
) -> None:
    """Check this source tree: style, types, import rules and tests."""
    from weft_devtools import commands

    commands.run(tuple(paths or ()), slow=slow, sabotage=sabotage, share=share, seed=seed, listing=listing)


def lint() -> None:
    """Check style, types and import rules only."""
    from weft_devtools import commands

    commands.lint()
