"""What the host tells its supervisor on stdout: its phases, one JSON object a line."""

import json
import os


class Announcer:
    """Writes phases to a descriptor. A reader that went away must not end the host: then it is silent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._heard = True

    def say(self, phase: str, **fields: str | int | bool) -> None:
        """Announce a phase."""
        if not self._heard:
            return
        line = json.dumps({"phase": phase, **fields}, ensure_ascii=False) + "\n"
        try:
            os.write(self._descriptor, line.encode())
        except OSError:
            self._heard = False

    def failed(self, reason: str, *, permanent: bool, outside: bool = False) -> None:
        """Announce a failure with one sentence."""
        further = {"outside": True} if outside else {}
        self.say("failed", reason=" ".join(reason.split()), permanent=permanent, **further)


def own_stdout() -> int:
    """Keep stdout for the phases: whatever else writes to it, native code too, goes to stderr from now on."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept
