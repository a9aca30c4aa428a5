"""A route whose body is JSON: decoded by msgspec, then held against its model."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from weft_gateway.domain.openai.decoding import decode

_DECODER: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()


class JSONRoute(APIRoute):
    """For every router whose routes take a body; `application` refuses others."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See APIRoute."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def decoded(request: Request) -> Response:
            decoded_request = _Decoded(request.scope, request.receive)
            if content := await decoded_request.body():
                decoded_request.value = decode(_DECODER, content)
            return await handler(decoded_request)

        return decoded


class _Decoded(Request):
    """A request whose JSON was read."""

    value: Any = None

    async def json(self) -> Any:
        """See Request."""
        return self.value
