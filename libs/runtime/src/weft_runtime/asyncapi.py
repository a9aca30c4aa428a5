"""The AsyncAPI 3 document of what passes through the log, made from the catalogue with FastStream's models.

Import it where a document is asked for: it takes a tenth of a second that no start should pay.
"""

from collections.abc import Iterable
from typing import Any

from faststream.specification.asyncapi.v3_0_0 import schema as v3
from faststream.specification.asyncapi.v3_0_0.schema.operations import Action
from pydantic import BaseModel
from weft_contracts import headers as h
from weft_contracts.channels import CHANNELS, Channel

_SCHEMAS = "#/components/schemas/"
_HEADERS: dict[str, str] = {
    h.EVENT_ID: "The event's id: 128 random bits, also the id by which the log refuses duplicates.",
    h.CORRELATION_ID: "The chain that the event belongs to.",
    h.CAUSATION_ID: "The event that asked for this one.",
    h.ACTOR: "Who wrote it: an opaque name.",
    h.SCHEMA: "The version of the message's own form.",
    h.SKIPPABLE: "Types of facts herein that a reader who doesn't know them may pass over.",
    h.TRACEPARENT: "The trace that it was written in, by W3C.",
}


def catalogue(version: str) -> dict[str, Any]:
    """The document of the whole mesh: every channel, and who sends on it."""
    return _document("Weft", version, "Every message that may pass through the log of a Weft mesh.", CHANNELS, ())


def of_service(name: str, version: str, sends: Iterable[Channel], receives: Iterable[Channel]) -> dict[str, Any]:
    """The document of one service's part: what it sends and what it receives."""
    return _document(f"Weft {name}", version, f"What the {name} sends and receives.", tuple(sends), tuple(receives))


def _document(
    title: str, version: str, description: str, sends: tuple[Channel, ...], receives: tuple[Channel, ...]
) -> dict[str, Any]:
    schemas: dict[str, dict[str, Any]] = {}
    channels = {_key(each): _channel(each, schemas) for each in dict.fromkeys((*sends, *receives))}
    operations = {f"send-{_key(each)}": _operation(Action.SEND, each) for each in sends}
    operations |= {f"receive-{_key(each)}": _operation(Action.RECEIVE, each) for each in receives}
    return v3.ApplicationSchema(
        info=v3.ApplicationInfo(title=title, version=version, description=description),
        defaultContentType="application/json",
        channels=channels,
        operations=operations,
        components=v3.Components(schemas=schemas),
    ).to_jsonable()


def _operation(action: Action, channel: Channel) -> v3.Operation:
    place = f"#/channels/{_key(channel)}"
    return v3.Operation(
        action=action,
        channel=_reference(place),
        messages=[_reference(f"{place}/messages/{_key(channel)}")],
        tags=[{"name": writer} for writer in channel.writers] if action is Action.SEND else None,
    )


def _channel(channel: Channel, schemas: dict[str, dict[str, Any]]) -> v3.Channel:
    more: dict[str, Any] = {}
    if channel.parameters:
        more["parameters"] = {name: {"description": f"Which {name}: its id."} for name in channel.parameters}
    more["x-writers"] = list(channel.writers)
    if channel.entry is not None:
        more |= {
            "x-version": channel.entry.version,
            "x-per-day-at-1000-nodes": channel.entry.per_day,
            "x-may-be-passed-over": channel.entry.ignorable,
        }
    return v3.Channel(
        address=channel.address,
        description=channel.says or None,
        messages={_key(channel): _message(channel, schemas)},
        **more,
    )


def _message(channel: Channel, schemas: dict[str, dict[str, Any]]) -> v3.Message:
    payload: dict[str, Any] = {}
    more: dict[str, Any] = {}
    if channel.payload is not None:
        payload = {"$ref": _SCHEMAS + _key(channel)}
        _add(_key(channel), channel.payload, schemas)
    if channel.entry is not None:
        # One message is one commit: a list of facts of one aggregate, whose first one names the subject.
        payload = {"type": "array", "minItems": 1, "items": [payload], "additionalItems": {"type": "object"}}
        more["headers"] = {
            "type": "object",
            "properties": {name: {"type": "string", "description": says} for name, says in _HEADERS.items()},
            "required": [h.EVENT_ID, h.CORRELATION_ID, h.ACTOR, h.SCHEMA],
        }
        more["correlationId"] = v3.CorrelationId(location=f"$message.header#/{h.CORRELATION_ID}")
    return v3.Message(name=channel.name, title=channel.says or channel.name, payload=payload, **more)


def _add(name: str, model: type[BaseModel], schemas: dict[str, dict[str, Any]]) -> None:
    """Put a model's schema and those of its parts among the others. Raises ValueError for two of one name."""
    schema = model.model_json_schema(ref_template=_SCHEMAS + "{model}", mode="serialization")
    parts: dict[str, dict[str, Any]] = schema.pop("$defs", {})
    for part, its in {**parts, name: schema}.items():
        its = _plain(its)
        if schemas.setdefault(part, its) != its:
            raise ValueError(f"two schemas are called {part}: rename one of the classes")


def _plain(schema: Any) -> Any:
    """Without what JSON Schema's draft 7, which AsyncAPI speaks, says differently: discriminators, fixed tuples."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {key: _plain(value) for key, value in schema.items()}  # pyright: ignore
    if isinstance(plain.get("discriminator"), dict):
        del plain["discriminator"]
    if isinstance(plain.get("prefixItems"), list):
        plain["items"] = plain.pop("prefixItems")
    return plain


def _key(channel: Channel) -> str:
    """A channel's name as a key: some tools stumble over dots there."""
    return channel.name.replace(".", "-")


def _reference(to: str) -> v3.Reference:
    return v3.Reference.model_validate({"$ref": to})
