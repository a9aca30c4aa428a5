"""How a command fails: with one sentence for people and an exit status for scripts."""

from enum import IntEnum


class Exit(IntEnum):
    """What `weft` exits with."""

    OK = 0
    FAILED = 1
    """The sentence on stderr says why."""
    USAGE = 2
    """The command line is wrong."""
    CHANGES = 2
    """`apply --dry-run`: the mesh isn't what the file says. No command line that is read is wrong then, so the two
    don't meet."""
    NOT_RUNNING = 3
    """`status` and `down`: no mesh runs on this state."""
    NOT_READY = 4
    """`status`: a mesh runs, and a part or a model of it is not ready."""
    INTERRUPTED = 130


class Failure(Exception):
    """Ends the command. The message is one sentence: what, where, what would be right."""

    def __init__(self, sentence: str, exit: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.exit = exit
