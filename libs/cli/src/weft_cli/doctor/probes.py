"""Short questions to servers, each bounded: an answer, or in a few words why there is none."""

import http.client
import json
import socket
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. `status` 0: there was none, and `why` says so."""

    status: int
    body: dict[str, Any]
    skew_s: float | None = None
    """How far the server's clock is ahead of this one, to a second; None where it doesn't tell."""
    why: str = ""


def over_http(host: str, port: int, path: str, *, tls: bool = False) -> Answer:
    """A GET's answer. Without a library and without the environment's proxies.

    Over TLS whoever answers is believed: nothing is sent that must not be seen, and only health is asked.
    """
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    try:
        before = time.time()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(1 << 20)
        middle = (before + time.time()) / 2
        return Answer(answer.status, _object(body), _skew(answer.headers.get("Date"), middle))
    except TimeoutError:
        return Answer(0, {}, why=f"no answer within {TIMEOUT_S:g} s")
    except (OSError, http.client.HTTPException) as e:
        return Answer(0, {}, why=getattr(e, "strerror", None) or type(e).__name__)
    finally:
        connection.close()


def nats_greets(port: int) -> str | None:
    """None if a NATS server greets on loopback; else what is there instead."""
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as s:
            greeting = s.recv(4096)
    except OSError as e:
        return e.strerror or str(e) or "no answer"
    return None if greeting.startswith(b"INFO {") else "something that is no NATS server listens there"


def postgres_answers(state: Path) -> str | None:
    """None if the state's Postgres takes connections on its socket; else why not."""
    try:
        lines = (state / "data" / "postmaster.pid").read_text().splitlines()
        number, folder = lines[3].strip(), lines[4].strip()  # as pg_ctl reads them
    except (OSError, IndexError):
        return "it doesn't run"
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT_S)
            s.connect(f"{folder}/.s.PGSQL.{number}")
            s.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")  # SSLRequest, which every server answers with a byte
            return None if s.recv(1) in (b"N", b"S") else "it takes no connections"
    except OSError as e:
        return e.strerror or str(e) or "no answer"


def _object(body: bytes) -> dict[str, Any]:
    try:
        parsed: object = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}


def _skew(date: str | None, now: float) -> float | None:
    """HTTP dates are cut to the second, so on average half a second is missing."""
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).timestamp() + 0.5 - now
    except ValueError:
        return None
