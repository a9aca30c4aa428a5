"""All that a gateway remembers of the log, in one piece: what its snapshots hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_fleet import Registrations

from weft_gateway.projections.directory import Directory
from weft_gateway.projections.keys import Keys
from weft_gateway.projections.registration_tokens import Tokens
from weft_gateway.projections.requests import Requests


@dataclass(eq=False)
class Memory:
    """Folded in one go, so that its parts stand at the same place."""

    directory: Directory = field(default_factory=Directory)
    tokens: Tokens = field(default_factory=Tokens)
    keys: Keys = field(default_factory=Keys)
    registrations: Registrations = field(default_factory=Registrations)
    requests: Requests = field(default_factory=Requests)

    def fold(self, commits: Sequence[Recorded]) -> None:
        """Fold a batch."""
        self.directory.fold(commits)
        self.tokens.fold(commits)
        self.keys.fold(commits)
        for commit in commits:
            self.registrations.apply(commit)
        self.requests.fold(commits)  # last: who waits for an outcome then finds the rest folded

    def on_restored(self) -> None:
        """The memory was filled from a snapshot."""
        self.keys.on_restored()
        self.directory.invalidate()
