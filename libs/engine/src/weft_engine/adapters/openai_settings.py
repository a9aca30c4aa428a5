"""What the engine that asks an OpenAI server can be told."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from weft_engine.launch import Launch


class OpenAISettings(BaseModel):
    """The `engine_args`, once they are checked against the profile, which has their ranges and forms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str
    """what `/chat/completions` is appended to; mostly it ends with /v1"""
    model: str
    """as the server calls it"""
    key: str | None = None
    """`secret:NAME`: the secret that is shown as a bearer's token"""
    embeddings: bool = False
    """answer Embed and Rerank instead of Submit"""
    requests_per_minute: int | None = None
    """that this replica sends in any minute, the health's own among them; the next is refused as busy"""
    first_byte_s: float = 120.0
    """from a request until the server's first word: the time that a prompt may wait there and be computed"""
    silence_s: float = 60.0
    """between two words of an answer"""
    health_s: float = 300.0
    """an idle server is asked for one token this often"""
    tool_calls: Literal["server", "prompt"] = "server"
    """tools go to the server, which tells calls from text; or the prompt alone speaks of them"""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    memory_bytes: int = 0
    """what the replica claims; placement's to know"""

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings."""
        return cls.model_validate(launch.engine_args)
