"""The developers' commands, declared: names, options, help."""

from typing import Annotated

import typer


def declare(app: typer.Typer) -> None:
    """Add them to the command line of a source tree."""
    app.command("test")(check)
    app.command()(lint)


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATHS]", help="Only these tests, sabotages, or packages whose rules are mutated."),
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="The slow tests, and only those.")] = False,
    sabotage: Annotated[bool, typer.Option("--sabotage", help="Break what each story tests; it must notice.")] = False,
    mutate: Annotated[bool, typer.Option("--mutate", help="Change rules by a token; their tests must notice.")] = False,
    changed: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="With --mutate: only files that differ from it.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="With --mutate: begin no further one after this time.")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="With --mutate: those that live are told and fail nothing.")
    ] = False,
    share: Annotated[
        str | None, typer.Option(metavar="K/N", help="With --sabotage or --mutate: the K-th of N parts.")
    ] = None,
    seed: Annotated[str, typer.Option(help="With --share: what the parts are drawn by.")] = "",
    listing: Annotated[bool, typer.Option("--list", help="With --sabotage: list the stories.")] = False,
) -> None:
    """Check this source tree: style, types, import rules and tests."""
    from weft_devtools import commands

    chosen = [name for name, wanted in (("--slow", slow), ("--sabotage", sabotage), ("--mutate", mutate)) if wanted]
    given = {
        "--share": share,
        "--list": listing,
        "--changed": changed,
        "--limit": limit,
        "--report-only": report_only,
    }
    commands.refuse_what_does_not_go_together(chosen, [name for name, value in given.items() if value])
    if mutate:
        commands.mutate(tuple(paths or ()), changed, share, seed, limit, report_only=report_only)
    else:
        commands.run(tuple(paths or ()), slow=slow, sabotage=sabotage, share=share, seed=seed, listing=listing)


def lint() -> None:
    """Check style, types and import rules only."""
    from weft_devtools import commands

    commands.lint()
