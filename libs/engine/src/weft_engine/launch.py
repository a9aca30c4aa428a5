"""What an engine host is told at its start: one replica, one engine, complete in itself."""

import json
from pathlib import Path
from typing import IO, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.lora import MOST_LORA_ADAPTERS, LoraName, LoraScale
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.processors import LIST

MAX_LAUNCH_BYTES = 64 * 1024


class BadLaunch(ValueError):
    """A launch that can't be read; the text is one sentence."""


class ClaimedDevice(BaseModel):
    """One device that the replica may use, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vendor: Vendor
    """`cpu`: the processor, whose memory is the machine's"""
    number: int | None = Field(default=None, ge=0)
    """how its vendor's own tools count it"""
    uuid: str = Field(default="", pattern=r"^[A-Za-z0-9._:/-]{0,96}$")
    """as its vendor's runtime knows it"""
    pci: str = Field(default="", pattern=r"^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])?$")
    """where it is on the machine's PCI bus"""
    bytes: int = Field(ge=0)
    """of its memory, at most"""


class NumaBinding(BaseModel):
    """A NUMA node of this machine, and those of its processors that the engine may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: int = Field(ge=0)
    processors: str = Field(pattern=f"^{LIST}$", max_length=8192)
    """as Linux lists them: `0-3,8`"""


class LoraFile(BaseModel):
    """A LoRA adapter on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: LoraName
    path: str = Field(min_length=1)
    """a GGUF file, or a folder as peft writes it: what the engine loads"""
    scale: LoraScale = 1.0


class Launch(BaseModel):
    """The host's orders. Anything unknown or out of range is refused, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replica: str = Field(min_length=1)
    incarnation: str = Field(min_length=1)
    node: str
    revision_digest: str
    engine: EngineName
    model_path: str | None = None
    """the model's file on this machine; an engine without files needs none"""
    context_tokens: int = Field(ge=1)
    """prompt and answer together, per request"""
    concurrency: int = Field(ge=1, le=1024)
    """requests that run at once"""
    max_waiting: int = Field(default=256, ge=0)
    """requests that wait inside the engine; the next is refused as busy"""
    adapters: tuple[LoraFile, ...] = Field(default=(), max_length=MOST_LORA_ADAPTERS)
    """LoRA adapters that are loaded with the model and applied to all that it answers"""
    rank: int = Field(default=0, ge=0)
    """which of a group's processes this is; 0 leads and takes sessions"""
    ranks: int = Field(default=1, ge=1)
    """how many there are, each on a node of its own"""
    devices: tuple[ClaimedDevice, ...] = Field(default=(), max_length=64)
    """what the replica claims on this node; empty: nothing is said, and an engine takes what it takes"""
    threads: int = Field(default=1, ge=1)
    numa: NumaBinding | None = None
    """where the engine is to run; none: wherever its agent may"""
    engine_args: dict[str, ArgumentValue] = {}
    """settings of the engine, by its adapter's names"""
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    """0: any free one; the ready line tells which"""
    tls_folder: str | None = None
    """where the node's certificate lies; none: plain connections"""
    correlation_id: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    without_agent_s: float = Field(default=60.0, gt=0)
    """a host that no agent watches for so long ends itself"""
    canary_after_s: float = Field(default=60.0, ge=0)
    """an engine without a step for so long is asked for a token; 0: never"""
    stop_within_s: float = Field(default=10.0, gt=0)
    """how long running requests may go on after SIGTERM"""
    retire_within_s: float = Field(default=3600.0, gt=0)
    """how long running requests may go on after the agent's retire"""

    @classmethod
    def read(cls, source: str, stdin: IO[str]) -> Self:
        """Read a launch from a JSON file, or from one line of stdin when `source` is "-". Raises BadLaunch."""
        try:
            if source == "-":
                text = stdin.readline(MAX_LAUNCH_BYTES)
            else:
                with Path(source).open(encoding="utf-8") as file:
                    text = file.read(MAX_LAUNCH_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            raise BadLaunch(f"the launch file can't be read: {error}") from None
        try:
            return cls.model_validate(json.loads(text))
        except json.JSONDecodeError as error:
            raise BadLaunch(f"the launch is no JSON: {error}") from None
        except ValidationError as error:
            raise BadLaunch(f"the launch is wrong: {first_fault(error)}") from None


def first_fault(error: ValidationError) -> str:
    """The first thing wrong with settings: where, what, and what was given."""
    fault = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in fault["loc"]) or "the whole"
    given = "" if fault["type"] in ("missing", "extra_forbidden") else f", not {str(fault['input'])[:60]!r}"
    return f"{where}: {fault['msg'][0].lower()}{fault['msg'][1:]}{given}"
