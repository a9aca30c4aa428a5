"""The names of the commands, in the sections of the help, and how a text names one so that it can be pasted.

The command line is called `./weft` from a checkout, else `weft`.
"""

import os
import re
import shlex

SECTIONS = (
    ("First steps", ("up", "status", "chat", "deploy", "doctor", "down")),
    (
        "Models",
        (
            "apply",
            "remove",
            "retry",
            "rollback",
            "files",
            "aliases",
            "policies",
            "engines",
            "backends",
            "secrets",
            "explain",
            "plan",
            "bench",
        ),
    ),
    ("What happens", ("top", "events", "logs")),
    (
        "Machines",
        ("worker", "nodes", "drain", "tokens", "nats-config", "found", "install", "uninstall", "bundle", "upgrade"),
    ),
    ("Who may come in", ("keys", "observers")),
    ("When much fails, and to try that", ("brake", "hold", "release")),
    ("Around it", ("completion", "dev", "test", "lint")),
)
COMMANDS = tuple(name for _, names in SECTIONS for name in names)
ENVIRONMENT = "WEFT_CALLED_AS"
"""Set by the launcher of a checkout: the word by which it was called."""
_HINT = re.compile(rf"(?<![\w./-])weft(?= (?:{'|'.join(map(re.escape, COMMANDS))})\b)")


def name() -> str:
    """The word that calls the command line again."""
    return shlex.quote(os.environ.get(ENVIRONMENT) or "weft")


def pasteable(text: str) -> str:
    """A text of Weft's own in which each `weft COMMAND` is called as this command line was."""
    return _HINT.sub(lambda _: name(), text)
