"""A Submit's wishes as vLLM's sampling parameters and grammar."""

from collections.abc import Mapping
from typing import Any, Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.json_grammar import grammar_of
from weft_engine.json_parts import TEXT
from weft_engine.json_schema import SchemaRefused

MAX_SEED: Final = 2**63 - 1
OWN: Final = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a model's generation_config.json may say of sampling, where the request says nothing."""
_LINES: Final = TEXT.replace(".*", '(. | "\\n")*')
"""llguidance's dot leaves out the line's end."""


def sampling_of(request: pb.Submit, own: Mapping[str, Any], room: int, vocabulary: int) -> dict[str, Any]:
    """vLLM's parameters. `own`: the model's own; `room`: tokens that the context still holds.

    Raises RequestRefused.
    """
    asked = request.sampling
    for bias in request.bias:
        if bias.id >= vocabulary:
            raise RequestRefused(
                pb.FAULT_BAD_REQUEST,
                f"`logit_bias` names token {bias.id}; the model's tokens are 0 to {vocabulary - 1}",
                "bias",
            )
    parameters: dict[str, Any] = {name: own[name] for name in OWN if own.get(name) is not None}
    for name in ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty"):
        if asked.HasField(name):
            parameters[name] = getattr(asked, name)
    if asked.HasField("seed"):
        parameters["seed"] = asked.seed & MAX_SEED
    if asked.ignore_end:
        parameters["ignore_eos"] = True
    if request.bias:
        parameters["logit_bias"] = {bias.id: bias.value for bias in request.bias}
    if request.HasField("scores"):
        parameters["logprobs"] = request.scores
    parameters["max_tokens"] = min(request.max_tokens or room, room)
    return parameters


def grammar_for(request: pb.Submit) -> str:
    """The grammar that the answer is held to; empty: none. Raises RequestRefused."""
    if not request.HasField("constraint"):
        return ""
    asked = request.constraint
    try:
        grammar = grammar_of(asked.json_schema, or_text=asked.or_text, most=max(1, asked.most), or_json=asked.or_json)
    except SchemaRefused as refused:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, str(refused), "constraint") from None
    return grammar.replace(TEXT, _LINES)
