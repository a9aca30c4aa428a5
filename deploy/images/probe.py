"""Whether the service of this container is well and ready: status 0, else 1 and why not.

    probe.py [FOLDER]

Asks /healthz and /readyz of WEFT_HTTP_PORT on loopback. FOLDER, in which variables are replaced, is where the service's
certificate lies: with `authority.pem` in it the service speaks TLS. Run with `-I -S`, it starts in some 20 ms.
"""

import http.client
import os
import ssl
import sys

HOST = "127.0.0.1"
TIMEOUT_S = 2.0
ASKED = ("/healthz", "/readyz")
_MOST_BYTES = 300


def connection(port: int, authority: str) -> http.client.HTTPConnection:
    """Over TLS where there is an authority; which role the certificate names is nothing to ask oneself."""
    if not os.path.exists(authority):
        return http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_S)
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False
    return http.client.HTTPSConnection(HOST, port, timeout=TIMEOUT_S, context=context)


def problem(port: int, authority: str) -> str | None:
    """None where all is well; else what isn't, in a few words."""
    for path in ASKED:
        asking = connection(port, authority)
        try:
            asking.request("GET", path, headers={"Connection": "close"})
            answer = asking.getresponse()
            said = answer.read(_MOST_BYTES).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return f"{path}: {error}"
        finally:
            asking.close()
        if answer.status != http.client.OK:
            return f"{path}: {answer.status} {said}"
    return None


def main(arguments: list[str]) -> int:
    """The probe's exit status."""
    folder = os.path.expandvars(arguments[0]) if arguments else ""
    why = problem(int(os.environ["WEFT_HTTP_PORT"]), os.path.join(folder, "authority.pem") if folder else "")
    print(why or "ready")
    return 0 if why is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
