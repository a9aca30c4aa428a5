"""Which engine hosts know what a request asks for: older ones would pass over it without a word."""

from weft_dataplane.limits import OR_JSON_VERSION, SHAPING_VERSION, TEMPLATE_VERSION

from weft_gateway.domain.inference_request import InferenceRequest


def oldest_version(request: InferenceRequest) -> int:
    """Of the protocol, that knows what shapes the request."""
    if request.template_kwargs:
        return TEMPLATE_VERSION
    constraint = request.constraint
    return SHAPING_VERSION if constraint is None or not constraint.or_json else OR_JSON_VERSION
