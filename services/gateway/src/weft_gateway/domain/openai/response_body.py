"""The body of `POST /v1/responses` as OpenAI documents it."""

from typing import Any

import msgspec

from weft_gateway.domain.inference_request import Sampling


class TextFormat(msgspec.Struct, forbid_unknown_fields=True):
    """`text.format`: text, any JSON object, or JSON that fits a schema, whose members stand beside the type."""

    type: str
    name: str | None = None
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class TextConfig(msgspec.Struct, forbid_unknown_fields=True):
    """What the answer's text must look like."""

    format: TextFormat | None = None
    verbosity: str | None = None


class ResponseStreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """`include_obfuscation` is taken without effect."""

    include_obfuscation: bool | None = None


class ResponseBody(Sampling, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Its fields, and of how tokens are drawn also what the other routes take."""

    model: str
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    text: TextConfig | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    access_programs: Any = None
    background: Any = None
    context_management: Any = None
    conversation: Any = None
    image: Any = None
    moderation: Any = None
    previous_response_id: Any = None
    prompt: Any = None
    reasoning: dict[str, Any] | None = None
    service_tier: Any = None
    store: Any = None
    """Left out it means no, whatever OpenAI's own default is: clients leave it out."""
    truncation: Any = None
    # without effect on the answer: they speak of the caller's books, of caches, or of tools that nothing here has
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
