"""`weft test` and `weft lint`."""

from collections.abc import Sequence

from weft_client.failure import Exit, Failure

from weft_devtools import sabotage as sabotages
from weft_devtools import suite, tree

_BELONGS_TO = {
    "--share": ("--sabotage", "--mutate"),
    "--list": ("--sabotage",),
    "--changed": ("--mutate",),
    "--limit": ("--mutate",),
    "--report-only": ("--mutate",),
}


def refuse_what_does_not_go_together(chosen: Sequence[str], options: Sequence[str]) -> None:
    """Raise Failure where two kinds of checks are wanted at once, or an option belongs to another one."""
    if len(chosen) > 1:
        raise Failure(f"{' and '.join(chosen)} are run one at a time", Exit.USAGE)
    for option in options:
        if not set(chosen) & set(_BELONGS_TO[option]):
            raise Failure(f"{option} belongs to {' and '.join(_BELONGS_TO[option])}", Exit.USAGE)


def run(paths: tuple[str, ...], *, slow: bool, sabotage: bool, share: str | None, seed: str, listing: bool) -> None:
    """Run what was asked for. Raises Failure that names what failed."""
    root = tree.root()
    if sabotage:
        _sabotage(paths, share, seed, listing=listing)
        return
    checks = [suite.pytest(root, paths, slow=slow)]
    if not slow and not paths:
        checks = [*suite.style_and_types(), *checks]
    _say(suite.run(checks, root))


def mutate(
    names: tuple[str, ...],
    changed: str | None,
    share: str | None,
    seed: str,
    limit_s: float | None,
    *,
    report_only: bool,
) -> None:
    """Try mutants. Raises Failure when too many live or, with `report_only`, when the tool breaks alone."""
    from weft_devtools.mutation import run as mutation  # what it stands on takes a second to import

    draw = mutation.Draw(names, changed, share or "1/1", seed, limit_s)
    noticed = mutation.tell(mutation.run(tree.root(), draw))
    if noticed < mutation.WANTED and not report_only:
        raise Failure(f"{noticed:.0%} of the mutants were noticed, and {mutation.WANTED:.0%} must be")


def lint() -> None:
    """Run the checks that need no test."""
    _say(suite.run(suite.style_and_types(), tree.root()))


def _say(failed: list[str]) -> None:
    if failed:
        raise Failure(f"failed: {', '.join(failed)}")


def _sabotage(names: tuple[str, ...], share: str | None, seed: str, *, listing: bool) -> None:
    root = tree.root()
    chosen = sabotages.named(sabotages.find(root), names)
    if share is not None:
        chosen = sabotages.share(chosen, share, seed)
    if listing:
        for each in chosen:
            print(f"{each.name}  {each.story}")
        return
    verdicts = sabotages.run(root, chosen)
    bad = [each.sabotage.name for each in verdicts if each.problem]
    print(f"{len(verdicts) - len(bad)} of {len(verdicts)} sabotages were noticed")
    if bad:
        raise Failure(f"these sabotages went wrong: {', '.join(bad)}")
