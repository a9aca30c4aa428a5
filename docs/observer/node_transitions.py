"""Prints what becomes of each node, as it happens: `python node_transitions.py NATS-URL FILE.creds [FILE.pem]`.

`weft observers add NAME` makes the files, the third where the mesh speaks TLS. It takes FastStream and nkeys:
`pip install "faststream[nats]" nkeys`.
"""

import asyncio
import ssl
import sys
from typing import Any

from faststream import FastStream
from faststream.nats import NatsBroker, NatsMessage
from faststream.nats.security import NatsSecurity

url, credentials = sys.argv[1:3]
tls: NatsSecurity | None = None
if len(sys.argv) > 3:
    context = ssl.create_default_context(cafile=sys.argv[3])
    tls = NatsSecurity(ssl_context=context, tls_hostname="nats.weft.internal", tls_handshake_first=True)
broker = NatsBroker(url, user_credentials=credentials, security=tls, max_reconnect_attempts=-1)
STATES = "joined approved rejected healthy unhealthy offline draining drained resumed cordoned uncordoned removed"
names: dict[str, str] = {}


@broker.subscriber("weft.ev.node.*.*")
async def on_node(facts: list[dict[str, Any]], message: NatsMessage) -> None:
    """One message is one commit: the facts of one node, in order."""
    node = message.raw_message.subject.split(".")[3]
    for fact in facts:
        if "name" in fact:
            names[node] = fact["name"]
        if fact["type"] in STATES.split():
            why = fact.get("why") or ""
            print(names.get(node, node), fact["type"], why, flush=True)


app = FastStream(broker)


@app.after_startup
async def ready() -> None:
    print("listening", flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
