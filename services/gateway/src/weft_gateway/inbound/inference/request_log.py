"""The log line of an inference request."""

from typing import Any

from weft_runtime.logs import get_logger

from weft_gateway.inbound.inference.in_flight_choice import InFlightChoice

_log: Any = get_logger("weft.gateway.inference")


def log_ended(choice: InFlightChoice, outcome: str, now: float) -> None:
    """A choice is over. `now`: monotonic seconds."""
    _log.info(
        "request",
        correlation_id=choice.correlation_id,
        model=choice.request.model,
        **({"alias": choice.way.alias} if choice.way is not None else {}),
        replica=choice.replica,
        outcome=outcome,
        prompt_tokens=choice.usage.prompt,
        output_tokens=choice.usage.output,
        seconds=round(now - choice.started_at, 4),
        **({"error": choice.last_error} if choice.last_error else {}),
        **choice.log_attributes,
    )
