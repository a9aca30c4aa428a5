"""Which revisions of a model there should be replicas of now."""

from dataclasses import dataclass

from weft_fleet import ModelView, Revision


@dataclass(frozen=True, slots=True)
class Rollout:
    """A revision that is wanted, and the one that is kept until it is established."""

    new: Revision
    old: Revision | None

    @property
    def revisions(self) -> tuple[Revision, ...]:
        """Both, or the one that there is."""
        return (self.new,) if self.old is None else (self.new, self.old)

    def of(self, revision: Revision) -> Revision | None:
        """Which of them a replica of some revision counts for; None where it is superseded."""
        return next((each for each in self.revisions if revision.runs_as(each)), None)


def rollout_of(model: ModelView) -> Rollout:
    """Of the newest revision beside the one that is kept, or of the kept one alone where the newest was given up."""
    new, kept = model.current, model.kept
    return Rollout(new, None if kept is None or kept.runs_as(new) else kept)
