"""Which models can be spoken to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway, Refused

if TYPE_CHECKING:
    from weft_api import Alias, Model

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
    stands_for: str = ""
    """Of an alias: its models, in words."""

    @property
    def serves(self) -> bool:
        return self.state == "ready"

    @property
    def about(self) -> str:
        """What a picker says of it."""
        if self.stands_for:
            return self.stands_for if self.serves else f"{self.stands_for}; {self.state}"
        if not self.serves:
            return f"{self.state}: {self.reason}" if self.reason else self.state
        return TOY if self.builtin else ""


def chat_models(gateway: Gateway) -> list[ChatModel]:
    """Models that a chat can be had with, by name, and then the aliases of such; one that loads is among them."""
    try:
        status = routes.status(gateway)
        models = [_chat_model(each) for each in status["models"] if _answers_chat(each)]
        names = {each.name for each in models}
        aliases = status.get("aliases", [])  # an older gateway tells of none
        return models + [_chat_alias(each) for each in aliases if any(t["model"] in names for t in each["targets"])]
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
    own = [each for each in ready if not each.stands_for]  # what an alias would be answered by
    if len(own) == 1:
        return own[0]
    if ready:
        return None
    models = [each for each in models if not each.stands_for]
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


def _chat_alias(each: "Alias") -> ChatModel:
    targets = each["targets"]
    ready = any(target["state"] == "ready" for target in targets)
    ordered = each["rule"] == "order"
    names = [target["model"] if ordered else f"{target['model']} {target['weight']}" for target in targets]
    return ChatModel(
        name=each["name"],
        state="ready" if ready else targets[0]["state"],
        stands_for=f"alias of {', '.join(names)} {'in order' if ordered else 'by weight'}",
    )


def _answers_chat(each: "Model") -> bool:
    """Whether it writes: an embedding model doesn't. A spec's argument goes before what its weights were made for."""
    asked = each["spec"]["engine_args"].get("embeddings")
    return asked is not True if isinstance(asked, bool) else not each["spec"]["weights"]["embeds"]
