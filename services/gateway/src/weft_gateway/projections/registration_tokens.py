"""Registration tokens by id, for the route where machines ask to join."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.ids import TokenId

from weft_gateway.domain.registration_token import TokenView, check_token, evolve_token


@dataclass(eq=False)
class Tokens:
    """Every token that was ever made: they are few."""

    views: dict[TokenId, TokenView] = field(default_factory=dict[TokenId, TokenView])

    def fold(self, commits: Sequence[Recorded]) -> None:
        for commit in commits:
            if commit.aggregate.kind == "token":
                id = TokenId(commit.aggregate.key)
                view = evolve_token(self.views.get(id), commit)
                if view is not None:
                    self.views[id] = view

    def check(self, secret: str, public_key: str, now: float) -> TokenId:
        """The id of a token that is good for this key's node. Raises Refused."""
        return check_token(self.views, secret, public_key, now)
