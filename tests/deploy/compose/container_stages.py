"""The stages of the Containerfile, as far as what runs an image sees them."""

import json
import re
from dataclasses import dataclass, field
from typing import Self

_CONTINUED = re.compile(r"\\\n\s*")
_PAIR = re.compile(r'([A-Za-z_.]+)=("[^"]*"|\S+)')


@dataclass
class Stage:
    """One stage with what it inherits."""

    name: str
    env: dict[str, str] = field(default_factory=dict[str, str])
    labels: dict[str, str] = field(default_factory=dict[str, str])
    exposed: set[str] = field(default_factory=set[str])
    user: str = ""
    entrypoint: list[str] = field(default_factory=list[str])
    healthcheck: list[str] = field(default_factory=list[str])
    locks: list[str] = field(default_factory=list[str])
    """Those that it installs."""

    def heir(self, name: str) -> Self:
        """A stage that begins as this one."""
        return type(self)(
            name, {**self.env}, {**self.labels}, {*self.exposed}, self.user, [*self.entrypoint], [*self.healthcheck]
        )

    def take(self, word: str, rest: str) -> None:
        """One instruction."""
        match word:
            case "ENV":
                self.env |= {name: value.strip('"') for name, value in _PAIR.findall(rest)}
            case "LABEL":
                self.labels |= {name: value.strip('"') for name, value in _PAIR.findall(rest)}
            case "EXPOSE":
                self.exposed |= set(rest.split())
            case "USER":
                self.user = rest
            case "ENTRYPOINT":
                self.entrypoint = json.loads(rest)
            case "HEALTHCHECK":
                self.healthcheck = json.loads(rest.partition("CMD ")[2])
            case "RUN":
                self.locks += re.findall(r"install\.py \S+ /opt/weft/locks/([a-z-]+)\.txt", rest)
            case _:
                pass


def stages(text: str) -> dict[str, Stage]:
    """All stages by name; what is built on a base outside begins with nothing."""
    found: dict[str, Stage] = {}
    now = Stage("")
    for line in _CONTINUED.sub(" ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            now = found[base].heir(name) if base in found else Stage(name)
            found[name] = now
        else:
            now.take(word, rest)
    return found
