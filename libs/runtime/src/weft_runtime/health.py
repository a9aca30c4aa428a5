"""What a service says of itself: its problems (health) and whether it can do its work (readiness)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    """Parts report here; `/healthz` and `/readyz` read it."""

    _problems: dict[str, str] = field(default_factory=dict[str, str])
    _own: set[str] = field(default_factory=set[str])
    _ready: dict[str, bool] = field(default_factory=dict[str, bool])

    def set(self, part: str, problem: str | None, *, own: bool = True) -> None:
        """Report a part's problem as a sentence, or None when it has none.

        `own`: of this process, so that starting it again may mend it. What others say or do to the mesh is not: a
        supervisor that went by it would let them end services.
        """
        self._own.discard(part)
        if problem is None:
            self._problems.pop(part, None)
            return
        self._problems[part] = problem
        if own:
            self._own.add(part)

    def set_ready(self, part: str, ready: bool) -> None:
        """Report whether a part can do its work. A service is ready when all that reported are."""
        self._ready[part] = ready

    @property
    def problems(self) -> dict[str, str]:
        return dict(self._problems)

    @property
    def own(self) -> int:
        """How many parts have a problem of this process itself."""
        return len(self._own)

    @property
    def sound(self) -> bool:
        """Whether this process itself is well: it has no problem of its own."""
        return not self._own

    @property
    def waiting_for(self) -> list[str]:
        """Parts that are not ready."""
        return sorted(part for part, ready in self._ready.items() if not ready)

    @property
    def ready(self) -> bool:
        return bool(self._ready) and not self.waiting_for
