"""Every wait, size and number of a transfer. Bytes and seconds."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one resolver keeps to; the defaults suit a link of 1 Mbit/s and more."""

    piece: int = 16 * MIB
    """Of a large file: what one range asks for, and what is resumed whole."""
    readers: int = 4
    """Ranges of one file at a time."""
    parallel_from: int = 64 * MIB
    """Smaller files come in one stream."""
    fetches: int = 8
    """Files at a time, of one resolver."""
    connect: float = 15.0
    """To resolve a name; to connect; for the handshake of TLS."""
    answer: float = 60.0
    """From a request to the end of its answer's head."""
    silence: float = 30.0
    """Without a byte."""
    window: float = 30.0
    """Over which a transfer must come to `least`, counting only the time in which we waited for it."""
    least: int = 4096
    """Bytes a second."""
    most_head: int = 128 * 1024
    """Of an answer, before its body."""
    redirects: int = 5
    tries: int = 4
    """At one address, without a new piece between them."""
    pause: float = 0.5
    """Before the second of them; doubles, with chance in it."""
    most_pause: float = 10.0
    held: float = 300.0
    """For a file that another process fetches, while nothing more of it comes."""
    look: float = 0.1
    """How often we look whether that process is done, and how often progress is told."""
    stop: float = 5.0
    """For a cancelled transfer's threads to end."""
    buffer: int = MIB // 4
    """Of each reader: it stays in a core's cache between connection and file, where a MiB costs a third more."""
