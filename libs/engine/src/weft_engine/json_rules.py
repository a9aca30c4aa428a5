"""A grammar's rules as they are collected: each has a name, and there is a bound to them."""

from typing import Final

from weft_engine.json_parts import NEEDS, PARTS
from weft_engine.json_schema import SchemaRefused

MAX_RULES: Final = 4000


class Rules:
    """Rules by name. Names that are made here begin with the mark, so that two grammars can share one text."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._bodies: dict[str, str] = {}
        self._count = 0

    def written(self, but: "Rules | None" = None) -> str:
        """All rules, but for the parts of JSON that another grammar has already."""
        known = {} if but is None else but._bodies
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items() if name not in known)

    def add(self, name: str, body: str) -> str:
        """Add a rule of this name, and answer the name."""
        self._bodies[name] = body
        return name

    def part(self, name: str) -> str:
        """Add a piece of JSON itself, with what it needs, and answer its name."""
        if name not in self._bodies:
            self.add(name, PARTS[name])
            for needed in NEEDS.get(name, ()):
                self.part(needed)
        return name

    def fresh(self, body: str) -> str:
        """Add a rule under a name of its own, and answer the name. Raises SchemaRefused for one too many."""
        name = self.name("r")
        if self._count > MAX_RULES:
            raise SchemaRefused("the JSON schema is too large for a grammar")
        return self.add(name, body)

    def name(self, kind: str) -> str:
        """A name that no rule has yet."""
        self._count += 1
        return f"{self._mark}{kind}{self._count}"
