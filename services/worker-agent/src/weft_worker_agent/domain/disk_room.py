"""Whether a disk has room for an engine, and what is said and waited for where it has not."""

from weft_worker_agent.domain.install_faults import InstallFault

MORE_BYTES = 64 << 20
"""By which what is free must have grown after a disk was full, before another try may end otherwise."""
_FULL = ("no space left on device", "os error 28", "disk quota exceeded", "os error 122", "[errno 28]", "[errno 122]")


def tells_of_full_disk(words: str) -> bool:
    """Whether these words of a program mean that a disk, or a quota of it, is full."""
    lower = words.lower()
    return any(each in lower for each in _FULL)


def lacks_room(engine: str, version: str, needed: int, free: int | None, folder: str) -> InstallFault | None:
    """Why an engine isn't begun on, in bytes of the recipe's estimate and of what is free; None: go on."""
    if free is None or free >= needed:
        return None
    words = f"it takes about {size_text(needed)}, and {size_text(free)} are free on the disk of {folder}"
    return InstallFault(f"{engine} {version} could not be installed: {words}", room=needed)


def was_full(engine: str, version: str, needed: int, free: int | None, folder: str) -> InstallFault:
    """The disk was full during an install. `free`: bytes once what was half made is gone."""
    left = f"{size_text(free)} are free" if free is not None else "nobody knows what is free"
    words = f"the disk of {folder} was full: it takes about {size_text(needed)}, and {left} without what was half made"
    return InstallFault(
        f"{engine} {version} could not be installed: {words}", room=max(needed, (free or 0) + MORE_BYTES)
    )


def size_text(size: int) -> str:
    """Bytes for people: `15.0 GB`, `20 MB`."""
    if size >= 1_000_000_000:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1_000_000 else f"{size} bytes"
