"""Stand-ins for the services: packages of their names that only say that they are ready, and end when told."""

import os
from pathlib import Path

from weft_embedded import mesh_plan

PACKAGES = (*mesh_plan.SERVICES.values(), mesh_plan.WORKER_MODULE)

_PROGRAM = """
import http.server, json, os, signal, sys, threading

def end(*_):
    print("told to end", flush=True)
    os._exit(0)

def until_launcher_ends():
    os.read(int(os.environ["WEFT_LIFELINE_FD"]), 1)
    os._exit(3)

class Answer(http.server.BaseHTTPRequestHandler):
    deployed = []

    def do_GET(self):
        stands = {"state": "ready", "reason": None, "wanted": 1, "ready": 1, "spec": {"engine": "llama.cpp"}}
        models = [{"name": name, "id": "m-1", "revision": 1, "digest": "d", **stands} for name in self.deployed]
        mesh, log = {"problems": []}, {"position": 0}
        self.answer({"nodes": [], "models": models, "replicas": [], "mesh": mesh, "log": log})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.deployed.append(body["name"])
        self.answer({"name": body["name"], "revision": 1})

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

signal.signal(signal.SIGTERM, end)
threading.Thread(target=until_launcher_ends, daemon=True).start()
port = int(os.environ["WEFT_HTTP_PORT"])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""


def install(folder: Path) -> dict[str, str]:
    """Write the stand-ins, and return an environment in which they go before the real services."""
    for name in PACKAGES:
        package = folder / name
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(_PROGRAM)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    return {**kept, "PYTHONPATH": path}
