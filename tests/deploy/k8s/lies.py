"""What is made wrong in rendered manifests, one thing at a time, as an edit or a change of the code would."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .rendered import Check, Object, Objects, named, render, workload

GONE = object()


@dataclass(frozen=True)
class Lie:
    """What is made wrong in an overlay, which check must see it, and what it says then."""

    check: Check
    says: str
    make: Callable[[Objects], None]
    overlay: str = "production"


def pod(name: str, *path: str | int, to: Any) -> Callable[[Objects], None]:
    """Something of a pod's specification is another."""
    return lambda objects: put(workload(objects, name).pod, path, to)


def container(name: str, *path: str | int, to: Any) -> Callable[[Objects], None]:
    """Something of a pod's only container is another."""
    return pod(name, "containers", 0, *path, to=to)


def variable(name: str, said: str, to: Any) -> Callable[[Objects], None]:
    """A variable has another value; one that isn't there yet comes to be."""

    def make(objects: Objects) -> None:
        env: list[Object] = workload(objects, name).container["env"]
        env[:] = [each for each in env if each["name"] != said] + ([] if to is GONE else [{"name": said, "value": to}])

    return make


def renamed(name: str, said: str, to: str) -> Callable[[Objects], None]:
    """A variable is called otherwise."""

    def make(objects: Objects) -> None:
        (found,) = (each for each in workload(objects, name).container["env"] if each["name"] == said)
        found["name"] = to

    return make


def of(kind: str, name: str, *path: str | int, to: Any) -> Callable[[Objects], None]:
    """Something of an object is another."""
    return lambda objects: put(named(objects, kind, name), path, to)


def put(into: Any, path: tuple[str | int, ...], to: Any) -> None:
    for step in path[:-1]:
        into = into[step]
    if to is GONE:
        del into[path[-1]]
    else:
        into[path[-1]] = to


def seen(lie: Lie) -> bool:
    """Whether the check that must see it does."""
    objects = render(lie.overlay)
    lie.make(objects)
    return lie.says in "\n".join(lie.check(objects))
