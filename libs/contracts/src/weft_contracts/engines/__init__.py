"""What there is to know of engines, as data. No other place knows an engine by its name, but its adapter."""

from weft_contracts.engines.builtin import BUILTIN, EARLIER, Profiles, is_of, reading
from weft_contracts.engines.profile import (
    Argument,
    ArgumentClaim,
    ArgumentType,
    EngineProfile,
    FileFormat,
    HeaderClaim,
    Install,
)

__all__ = [
    "BUILTIN",
    "EARLIER",
    "Argument",
    "ArgumentClaim",
    "ArgumentType",
    "EngineProfile",
    "FileFormat",
    "HeaderClaim",
    "Install",
    "Profiles",
    "is_of",
    "reading",
]
