"""Who asks, once they are authenticated."""

from dataclasses import dataclass

from weft_gateway.domain.keys import KeyView
from weft_gateway.domain.refused import Refused

ANONYMOUS = "anonymous"
"""The actor where no key is needed and none was shown."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What the rest of a request is done as. `key` is None for one who needs none."""

    key: KeyView | None = None

    @property
    def actor(self) -> str:
        """The opaque id that stands in the log."""
        return ANONYMOUS if self.key is None else self.key.id

    @property
    def models(self) -> tuple[str, ...] | None:
        """Names of the only models to use; None: all."""
        return None if self.key is None else self.key.models

    def check_model(self, name: str) -> None:
        """Refuse a model that the key may not use, whether or not there is one of that name. Raises Refused, 403."""
        models = self.models
        if models is not None and name not in models:
            what = f"This key may not use model {name[:128]!r}; it may use: {', '.join(models)}."
            raise Refused(403, what, param="model", code="model_not_allowed")


NOBODY = Caller()
"""A caller who needs no key and showed none."""
