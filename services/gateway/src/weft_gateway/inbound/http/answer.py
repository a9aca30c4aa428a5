"""A typed answer: its annotation is what the type checker demands of its content, and what the document says of it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from fastapi import APIRouter
from fastapi.responses import Response

T = TypeVar("T")


class Answer(Response, Generic[T]):
    """JSON of a T of `weft_api`. Nothing checks it when it is sent: what the tables hold may be another version's."""

    media_type = "application/json"

    def __init__(self, content: T, status: int = 200, **headers: str) -> None:
        """Headers are named with `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(msgspec.json.encode(content), status, named)


def answering(router: APIRouter) -> Callable[..., None]:
    """`router.add_api_route` for handlers that return `Answer[T]`: the document says T."""

    def add(path: str, handler: Callable[..., Any], method: str, **more: Any) -> None:
        router.add_api_route(path, handler, methods=[method], response_model=answered_by(handler), **more)

    return add


def answered_by(handler: Callable[..., Any]) -> Any:
    """The T of a handler that returns `Answer[T]`. Raises TypeError for any other."""
    returned = get_type_hints(handler)["return"]
    if get_origin(returned) is not Answer:
        raise TypeError(f"{handler.__qualname__} returns {returned}; want Answer[…]")
    return get_args(returned)[0]
