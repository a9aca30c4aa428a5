"""What a node may register as a metadata file."""

import re

from weft_contracts.facts.values import MetadataFile

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")
_BLAKE3 = re.compile(r"[0-9a-f]{64}")


def fault_of(file: MetadataFile, most: int) -> str | None:
    """What is wrong with a registration, as a sentence; `most` is the largest size in bytes."""
    if _NAME.fullmatch(file.name) is None:
        return (
            f"the name {file.name[:128]!r} is not one of a file: "
            "letters, digits and . _ + - are allowed, up to 128, and no dot at the start"
        )
    if _BLAKE3.fullmatch(file.blake3) is None:
        return f"the checksum of {file.name} is not a blake3: 64 hexadecimal digits are wanted"
    if not 0 <= file.size <= most:
        return f"{file.name} is registered with {file.size} bytes, {most} are allowed"
    return None
