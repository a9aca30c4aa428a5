"""What an engine that is made of functions can do."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from weft_engine.functions.question import Question


def words(text: str) -> int:
    """How many words a text has: what counts as tokens where an engine has none."""
    return len(text.split())


@dataclass(frozen=True, slots=True)
class Functions:
    """What an engine can do. Each is called on a thread, up to the spec's `concurrency` at once."""

    write: Callable[[Question], Iterable[str]] | None = None
    """Answers piece by piece: each is sent as it comes and counts as a token. Best a generator: it is closed when
    the answer is long enough or nobody waits."""
    embed: Callable[[list[str]], Iterable[Sequence[float]]] | None = None
    """One vector for each text, in order, all of one length."""
    rerank: Callable[[str, list[str]], Iterable[float]] | None = None
    """How well each text fits the query, in order; more is better."""
    count: Callable[[str], int] = words
    """Tokens of a text, for usage and for the context's bound. It is called on the loop's thread: keep it quick."""
    honours: Collection[str] = ()
    """What `write` looks at of `Question.sampling`: `top_p`, `top_k`, `min_p`, `presence_penalty`,
    `frequency_penalty`. What isn't named is refused where a client asks for it."""
    canary: str = ""
    """The text that Weft itself asks with, before the engine is ready and when it was idle for long: something that it
    can answer cheaply and without effect. Empty: `a`."""
    close: Callable[[], object] | None = None
    """Gives back what was loaded."""
