"""API keys by id and by hash, for every request: answers from memory, whatever is away."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.ids import KeyId

from weft_gateway.domain.keys import KeyView, evolve_key


@dataclass(eq=False)
class Keys:
    """Every key that was ever made: they are few."""

    views: dict[KeyId, KeyView] = field(default_factory=dict[KeyId, KeyView])
    by_hash: dict[str, KeyView] = field(default_factory=dict[str, KeyView], compare=False)

    def fold(self, commits: Sequence[Recorded]) -> None:
        for commit in commits:
            if commit.aggregate.kind == "key":
                id = KeyId(commit.aggregate.key)
                view = evolve_key(self.views.get(id), commit)
                if view is not None:
                    self.views[id] = self.by_hash[view.hash] = view

    def on_restored(self) -> None:
        """The views were filled from a snapshot."""
        self.by_hash.clear()
        self.by_hash.update((view.hash, view) for view in self.views.values())
