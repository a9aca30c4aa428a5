"""Which models can be spoken to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway, Refused

if TYPE_CHECKING:
    from weft_api import Model

TOY = (
    "a toy that ships with Weft: it knows its table of capitals, elements and small sums, and says so where it doesn't"
)


@dataclass(frozen=True, slots=True)
class ChatModel:
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


def chat_models(gateway: Gateway) -> list[ChatModel]:
    """Models that a chat can be had with, by name; one that loads is among them."""
    try:
        listed = routes.status(gateway)["models"]
        return [_chat_model(each) for each in listed if _answers_chat(each)]
    except (Refused, KeyError, TypeError):  # a key that is good for inference alone, or somebody else's server
        return [ChatModel(each["id"]) for each in routes.servable(gateway).get("data", [])]


def to_ask(models: Sequence[ChatModel], wanted: str | None) -> ChatModel | None:
    """The model that a question goes to; None where several could be meant. Raises Failure if none can.

    A name that isn't listed is left for the gateway to judge: it may be deployed a moment later.
    """
    if wanted is not None:
        return next((each for each in models if each.name == wanted), ChatModel(wanted))
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


def ambiguous(models: Sequence[ChatModel]) -> Failure:
    """What a command says that can't ask a person which model is meant."""
    names = ", ".join(each.name for each in models if each.serves)
    return Failure(f"several models serve: {names}; say which: -m NAME", Exit.USAGE)


def _chat_model(each: "Model") -> ChatModel:
    return ChatModel(
        name=each["name"],
        state=each["state"],
        reason=each["reason"] or "",
        builtin=each["spec"]["source"]["kind"] == "builtin",
    )


def _answers_chat(each: "Model") -> bool:
    """Whether it writes: an embedding model doesn't. A spec's argument goes before what its weights were made for."""
    asked = each["spec"]["engine_args"].get("embeddings")
    return asked is not True if isinstance(asked, bool) else not each["spec"]["weights"]["embeds"]
