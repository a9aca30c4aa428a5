"""What a request asks for and an engine would pass over: it is refused by its name, never dropped."""

from collections.abc import Collection
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

_KNOWN_AS: Final = {
    "bias": "logit_bias",
    "scores": "logprobs",
    "constraint": "response_format` and `tools",
    "template_kwargs": "chat_template_kwargs",
}


def refuse_unhonoured(request: pb.Submit, engine: str, honoured: Collection[str] = ()) -> None:
    """Refuse the first field that would shape a draw and isn't among those that the engine honours.

    `honoured` are names of the Submit's own fields, or the sampling's. Temperature and seed are never refused: an
    engine whose answers are always the same keeps to any of them. Raises RequestRefused.
    """
    sampling = request.sampling
    shaping = {
        "top_p": sampling.HasField("top_p") and sampling.top_p < 1,
        "top_k": sampling.top_k > 0,
        "min_p": sampling.min_p > 0,
        "presence_penalty": sampling.presence_penalty != 0,
        "frequency_penalty": sampling.frequency_penalty != 0,
        "bias": len(request.bias) > 0,
        "scores": request.HasField("scores"),
        "constraint": request.HasField("constraint"),
        "template_kwargs": bool(request.template_kwargs),
    }
    for field, asked in shaping.items():
        if asked and field not in honoured:
            known = _KNOWN_AS.get(field, field)
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"the {engine} engine can't honour `{known}`", field)
