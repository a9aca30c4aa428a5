"""Which models can be spoken to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from weft_cli.client import Gateway, Refused
from weft_cli.failure import Exit, Failure

TOY = (
    "a toy that ships with Weft: it knows its table of capitals, elements and small sums, and says so where it doesn't"
)


@dataclass(frozen=True, slots=True)
class Servable:
    """A model as somebody who wants to speak to it sees it."""

    name: str
    state: str = "ready"
    reason: str = ""
    builtin: bool = False

    @property
    def serves(self) -> bool:
        return self.state == "ready"

    @property
    def about(self) -> str:
        """What a picker says of it."""
        if not self.serves:
            return f"{self.state}: {self.reason}" if self.reason else self.state
        return TOY if self.builtin else ""


def servable(gateway: Gateway) -> list[Servable]:
    """Models that a chat can be had with, by name; one that loads is among them."""
    try:
        listed: list[Mapping[str, Any]] = gateway.get("/api/status")["models"]
        return [_servable(each) for each in listed if _answers_chat(each)]
    except (Refused, KeyError, TypeError):  # a key that is good for inference alone, or somebody else's server
        listed = gateway.get("/v1/models").get("data", [])
        return [Servable(str(each["id"])) for each in listed]


def to_ask(models: Sequence[Servable], wanted: str | None) -> Servable | None:
    """The model that a question goes to; None where several could be meant. Raises Failure if none can.

    A name that isn't listed is left for the gateway to judge: it may be deployed a moment later.
    """
    if wanted is not None:
        return next((each for each in models if each.name == wanted), Servable(wanted))
    if not models:
        raise Failure("the mesh has no model to talk to; deploy one: weft deploy tiny")
    ready = [each for each in models if each.serves]
    if len(ready) == 1:
        return ready[0]
    if ready:
        return None
    if len(models) == 1 and models[0].state in ("loading", "empty"):
        return models[0]  # the gateway waits for one that loads, within its bound
    standing = "; ".join(f"{each.name} is {each.about}" for each in models)
    raise Failure(f"no model answers now: {standing} (see `weft status`)")


def which(models: Sequence[Servable]) -> Failure:
    """What a command says that can't ask a person which model is meant."""
    names = ", ".join(each.name for each in models if each.serves)
    return Failure(f"several models serve: {names}; say which: -m NAME", Exit.USAGE)


def _servable(each: Mapping[str, Any]) -> Servable:
    spec = cast("Mapping[str, Any]", each.get("spec") or {})
    source = cast("Mapping[str, Any]", spec.get("source") or {})
    return Servable(
        name=str(each["name"]),
        state=str(each.get("state", "ready")),
        reason=str(each.get("reason") or ""),
        builtin=source.get("kind") == "builtin",
    )


def _answers_chat(each: Mapping[str, Any]) -> bool:
    """Whether it writes: an embedding model doesn't. A spec's argument goes before what its weights were made for."""
    spec = cast("Mapping[str, Any]", each.get("spec") or {})
    asked: object = cast("Mapping[str, Any]", spec.get("engine_args") or {}).get("embeddings")
    made: object = cast("Mapping[str, Any]", spec.get("weights") or {}).get("embeds")
    return asked is not True if isinstance(asked, bool) else made is not True
