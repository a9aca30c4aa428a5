"""Logs as JSON lines on stderr, each with the replica, incarnation and correlation id."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else was given as a field."""


class JsonLines(logging.Formatter):
    """One JSON object for each record."""

    def __init__(self, **fields: str) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """The record's line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **self._fields,
            **{key: value for key, value in vars(record).items() if key not in PLAIN},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_to_stderr(level: str, **fields: str) -> None:
    """Send all logs of this process to stderr, with these fields in each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(**fields))
    logging.raiseExceptions = False  # a log nobody reads is no reason to stop
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
