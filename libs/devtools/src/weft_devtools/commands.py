"""`weft test` and `weft lint`."""

from weft_client.failure import Exit, Failure

from weft_devtools import sabotage as sabotages
from weft_devtools import suite, tree


def run(paths: tuple[str, ...], *, slow: bool, sabotage: bool, share: str | None, seed: str, listing: bool) -> None:
    """Run what was asked for. Raises Failure that names what failed."""
    if (share or listing) and not sabotage:
        raise Failure("--share and --list belong to --sabotage", Exit.USAGE)
    root = tree.root()
    if sabotage:
        _sabotage(paths, share, seed, listing=listing)
        return
    checks = [suite.pytest(paths, slow=slow)]
    if not slow and not paths:
        checks = [*suite.style_and_types(), *checks]
    _say(suite.run(checks, root))


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
