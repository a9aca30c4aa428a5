"""Settings of every observer: environment variables `WEFT_…`, with defaults and ranges."""

import base64
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator
from weft_contracts.ids import is_id
from weft_runtime.connection import read_credentials
from weft_runtime.settings import BadSetting, ProcessSettings

from weft_observer.happened import checked


class ObserverSettings(ProcessSettings):
    """Where the mesh is, by which credential it is heard, and what is asked for."""

    nats_authority: Path | None = None
    """The mesh's certificate, by which its NATS is known (`NAME.pem` of `weft observers add`). None: plain."""
    observe: str = "*"
    """Names of facts, separated by commas: `run.failed`, `run.*`, `*.failed`, `*`."""
    give_up_after: Annotated[float, Field(ge=1, le=30 * 86_400)] = 86_400.0
    """Seconds for which one fact is tried; then it is a dead letter, and the next one follows."""

    @field_validator("observe")
    @classmethod
    def _names_facts(cls, given: str) -> str:
        checked([each.strip() for each in given.split(",")])
        return given

    @property
    def patterns(self) -> tuple[str, ...]:
        """What `observe` says."""
        return tuple(each.strip() for each in self.observe.split(","))

    def credential(self) -> tuple[str, Path]:
        """The observer's name, by its credential, and that file. Raises BadSetting."""
        file = self.nats_credentials
        if file is None:
            raise BadSetting("WEFT_NATS_CREDENTIALS: name the file that `weft observers add` made")
        name = _named(read_credentials(file)[0])
        if not is_id(name):
            raise BadSetting(f"{file} is no observer's: `weft observers add` makes one")
        return name, file


def _named(token: str) -> str:
    """The name in a token that the server, not we, will verify; empty for none."""
    try:
        body = token.split(".")[1]
        said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return str(said["name"])
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
