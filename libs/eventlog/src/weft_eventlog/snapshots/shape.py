"""What a fold's memory is made of, read off its annotations: how to copy it, write it down and fill it again.

A memory is a dataclass that the fold changes in place; its parts may be such dataclasses too. Whatever else it holds
is a place: a table (`dict`), a set, or one value. `dict`, `list` and `set` mean "changed in place", also inside of
what a table holds, and are copied; `Mapping`, `tuple`, `frozenset`, frozen dataclasses and facts mean "replaced, never
changed", and are shared. A field with `compare=False` is no memory of the log and is left out.
"""

import copy
import functools
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from weft_contracts.facts.fact import Fact

from weft_eventlog.snapshots.version import fold_code

_SLICE_S = 0.002
"""Seconds of work after which a slice should end. Reading it takes about three times as long."""
_TABLES = (dict, OrderedDict)
_MAPPINGS = (*_TABLES, Mapping)
Copy = Callable[[Any], Any]


class CannotSnapshot(TypeError):
    """A memory whose annotations or contents can't be written down and come back the same."""


class BadContent(ValueError):
    """Bytes that are not what this shape writes."""


@dataclass(frozen=True, slots=True)
class Place:
    """One table, set or value of a memory."""

    name: str
    """The fields on the way to it, joined by dots."""
    owner: tuple[str, ...]
    field: str
    many: type | None
    """dict or set; None for one value."""
    adapter: TypeAdapter[Any]
    copied: Copy

    def owner_in(self, memory: object) -> Any:
        for step in self.owner:
            memory = getattr(memory, step)
        return memory

    def items(self, value: Any) -> Iterable[Any]:
        """What a slice takes some of."""
        if self.many is None:
            return (value,)
        return value.items() if self.many is dict else value


class Shape:
    """The places of a kind of memory. Raises CannotSnapshot for annotations that say too little."""

    def __init__(self, kind: type) -> None:
        self._code = _code(kind)
        self._places = tuple(self._found(kind, ()))
        self._by_name = {place.name: place for place in self._places}

    def _found(self, kind: type, path: tuple[str, ...]) -> Iterator[Place]:
        if not is_dataclass(kind):
            raise CannotSnapshot(f"{kind.__name__} is no dataclass")
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            if not field.compare:
                continue
            hint = hints[field.name]
            here = (*path, field.name)
            for each in _classes(hint):
                if each.__module__.startswith("weft_") and each.__module__ not in self._code:
                    named = f"{each.__module__}.{each.__qualname__}"
                    raise CannotSnapshot(f"{'.'.join(here)}: {named} is of code that is no part of the fold's version")
            if isinstance(hint, type) and _changes_in_place(hint):
                yield from self._found(hint, here)
            else:
                yield _place(hint, path, here)

    def copied(self, memory: object) -> list[Any]:
        """What the memory holds now, in a form that no later fold changes. Costs some 10 ns an entry.

        Raises CannotSnapshot.
        """
        try:
            return [place.copied(getattr(place.owner_in(memory), place.field)) for place in self._places]
        except (AttributeError, TypeError) as error:
            raise CannotSnapshot(f"the memory holds what its annotations don't say: {error}") from error

    def slices(self, copied: list[Any]) -> Iterator[bytes]:
        """The copy as lines, each some milliseconds of work. Raises CannotSnapshot."""
        for place, value in zip(self._places, copied, strict=True):
            items, some = iter(place.items(value)), 16
            while taken := list(islice(items, some)):
                began = time.perf_counter()
                try:
                    body = place.adapter.dump_json(taken, warnings="error")
                except ValueError as error:  # pydantic's own for what it can't write is one
                    raise CannotSnapshot(f"{place.name} holds what its annotation doesn't say: {error}") from error
                spent = time.perf_counter() - began
                yield place.name.encode() + b" " + body + b"\n"
                some = some * 2 if spent < _SLICE_S / 2 else max(1, some // 2) if spent > _SLICE_S else some

    def reader(self) -> "Reader":
        """Takes lines in and gives what a memory held."""
        return Reader(self._places, self._by_name)

    def fill(self, memory: object, content: list[Any]) -> None:
        """Let a memory hold this. Its dataclasses, tables and sets stay the same objects."""
        for place, value in zip(self._places, content, strict=True):
            owner = place.owner_in(memory)
            if place.many is None:
                setattr(owner, place.field, value)
            else:
                there = getattr(owner, place.field)
                there.clear()
                there.update(value)


class Reader:
    """Reads a snapshot's lines one by one. Nothing of a memory is touched."""

    def __init__(self, places: tuple[Place, ...], by_name: dict[str, Place]) -> None:
        self._places = places
        self._by_name = by_name
        self._found: dict[str, Any] = {place.name: place.many() for place in places if place.many is not None}

    def take(self, line: bytes) -> None:
        """Read one line. Raises BadContent."""
        name, _, body = line.partition(b" ")
        place = self._by_name.get(name.decode("utf-8", "replace"))
        if place is None:
            raise BadContent(f"{name[:80]!r} is no part of this fold")
        try:
            items = place.adapter.validate_json(body)
            if place.many is None:
                (self._found[place.name],) = items
            else:
                self._found[place.name].update(items)
        except (ValidationError, ValueError, TypeError) as error:
            first = " ".join(str(error).splitlines()[:3])
            raise BadContent(f"{place.name} can't be read: {first}") from error

    def content(self) -> list[Any]:
        """All that was read, place by place. Raises BadContent if one lacks."""
        missing = [place.name for place in self._places if place.name not in self._found]
        if missing:
            raise BadContent(f"{', '.join(missing)} is missing")
        return [self._found[place.name] for place in self._places]


def _place(hint: Any, owner: tuple[str, ...], here: tuple[str, ...]) -> Place:
    name = ".".join(here)
    origin, arguments = get_origin(hint), get_args(hint)
    for argument in arguments if origin in _TABLES else (hint,):
        _check(argument, name)
    many: type | None = None
    entry: Any = hint
    if origin in _TABLES:
        many, entry = dict, types.GenericAlias(tuple, arguments)
    elif origin is set:
        many, entry = set, arguments[0]
    try:
        some: Any = types.GenericAlias(list, (entry,))
        adapter: TypeAdapter[Any] = TypeAdapter(some)
    except PydanticSchemaGenerationError as error:
        raise CannotSnapshot(f"{name}: {error.message.splitlines()[0]}") from error
    return Place(name, owner, here[-1], many, adapter, _copy(hint, name) or _shared)


@functools.cache
def _code(kind: type) -> frozenset[str]:
    return frozenset(fold_code(kind))


def _changes_in_place(kind: type) -> bool:
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and not parameters.frozen


def _check(hint: Any, name: str) -> None:
    """Refuse annotations under which something else would come back than went in."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint is Any or hint is object or hint is Fact:
        raise CannotSnapshot(f"{name}: {getattr(hint, '__name__', hint)} doesn't say what is there; name the kinds")
    if get_origin(hint) in _MAPPINGS and not _is_text(get_args(hint)[0]):
        raise CannotSnapshot(f"{name}: inner tables have keys of text or whole numbers, no others")
    for argument in get_args(hint) if get_origin(hint) is not None else ():
        if not isinstance(argument, str | int | bool | bytes) and argument is not None:
            _check(argument, name)
    if isinstance(hint, type) and is_dataclass(hint):
        for field, inner in get_type_hints(hint, include_extras=True).items():
            _check(inner, f"{name}.{field}")


def _classes(hint: Any) -> Iterator[type]:
    """The classes that an annotation names, and those that their fields name."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if isinstance(hint, type):
        yield hint
        if is_dataclass(hint):
            for inner in get_type_hints(hint, include_extras=True).values():
                yield from _classes(inner)
    for argument in get_args(hint) if get_origin(hint) is not None else ():
        yield from _classes(argument)


def _is_text(hint: Any) -> bool:
    """Whether a hint is one of what JSON has as a key."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    return hint in (str, int) or (get_origin(hint) is Literal and all(type(each) is str for each in get_args(hint)))


def _shared(value: Any) -> Any:
    return value


def _copy(hint: Any, name: str) -> Copy | None:
    """How to copy what a hint describes; None where it may be shared."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _copy(arguments[0], name)
    if origin in _TABLES:
        inner = _copy(arguments[1], name)
        return dict if inner is None else lambda table: {key: inner(value) for key, value in table.items()}
    if origin in (set, list):
        if _copy(arguments[0], name) is not None:
            raise CannotSnapshot(f"{name}: what a set or a list holds must not change in place")
        return origin
    if origin in (Union, types.UnionType):
        if any(_copy(argument, name) is not None for argument in arguments):
            raise CannotSnapshot(f"{name}: what may be one of several kinds must not change in place")
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        return _copy_of(hint, name)
    return None


def _copy_of(kind: type, name: str) -> Copy | None:
    hints = get_type_hints(kind, include_extras=True)
    copies = {
        field.name: inner
        for field in fields(kind)
        if (inner := _copy(hints[field.name], f"{name}.{field.name}")) is not None
    }
    if not copies and not _changes_in_place(kind):
        return None

    def copied(value: Any) -> Any:
        twin = copy.copy(value)
        for field, inner in copies.items():
            object.__setattr__(twin, field, inner(getattr(value, field)))
        return twin

    return copied
