"""A checked inference request, free of any client's dialect."""

from typing import NamedTuple

import msgspec

from weft_gateway.domain.attribution import Attribution


class Message(NamedTuple):
    """One turn of a chat."""

    role: str
    content: str
    name: str = ""
    """Of who speaks; a template may know it."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn, by the data plane's names. None: the engine's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    ignore_end: bool | None = msgspec.field(default=None, name="ignore_eos")
    """Go on past the model's end token. Clients know it by its other name, which bodies inherit from here."""


class Constraint(NamedTuple):
    """What the answer must look like."""

    json_schema: str
    """A JSON schema as text."""
    or_text: bool = False
    """Text is right as well; it begins with no brace. Stop strings act on it alone."""
    most: int = 1
    """Of values that fit; each stands on a line of its own."""
    or_json: str = ""
    """Another JSON schema as text, one value of which is right as well."""
    told: int = 0
    """Characters at the end of the chat's first message that tell the model of the calls that the schema fits."""


class InferenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants, checked; of one choice where there are several."""

    model: str
    chat: tuple[Message, ...] = ()
    text: str | None = None
    tokens: tuple[int, ...] = ()
    """Exactly one of chat, text and tokens is given."""
    more_prompts: "tuple[str | tuple[int, ...], ...]" = ()
    """Further prompts of a text completion, each answered by itself."""
    n: int = 1
    """Choices for each prompt."""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int = 0
    """0: as many as the context holds."""
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    bias: tuple[tuple[int, float], ...] = ()
    """Token ids and what is added to their logits."""
    constraint: Constraint | None = None
    calls: tuple[str, ...] = ()
    """Names of functions: an answer may be calls of them instead of text; see `answers.call_reader`."""
    scores: int | None = None
    """Log probabilities of each token and of so many likeliest ones; None: none."""
    echo: bool = False
    """The answer begins with the prompt's text."""
    budget_field: str = "max_tokens"
    """What the client calls `max_tokens`."""
    response_echo: bytes | None = None
    """Of a request for a response (`/v1/responses`): what its answer shows of it, as members of a JSON object."""
    service_tier: str = ""
    """What the answer says of it; empty: nothing."""
    attribution: Attribution = Attribution()
    template_kwargs: str = ""
    """A JSON object as text: what the chat template is given as variables; empty: nothing."""

    @property
    def resumable(self) -> bool:
        """Whether the same tokens come again from any replica of the same revision, from anywhere on."""
        return self.sampling.temperature == 0 and self.constraint is None

    @property
    def shaping(self) -> str:
        """What an older engine would pass over, by its field's name; empty: nothing."""
        if self.constraint is not None:
            return "tools" if self.calls else "response_format" if self.response_echo is None else "text.format"
        if self.template_kwargs:
            return "chat_template_kwargs"
        return "logprobs" if self.scores is not None else "logit_bias" if self.bias else ""

    def named(self, field: str) -> str | None:
        """A field of the data plane's Submit by the name that this request's client knows; None for none."""
        match field:
            case "prompt" if self.response_echo is not None:
                return "input"
            case "prompt":
                return "messages" if self.chat else "prompt"
            case "constraint":
                return self.shaping
            case "bias":
                return "logit_bias"
            case "scores":
                return "logprobs" if self.response_echo is None else "top_logprobs"
            case "max_tokens":
                return self.budget_field
            case "template_kwargs":
                return "chat_template_kwargs"
            case "ignore_end":
                return "ignore_eos"
            case _:
                return field or None
