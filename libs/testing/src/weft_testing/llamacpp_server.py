"""llama.cpp's own HTTP server in a process of its own: an OpenAI-compatible server that is none of Weft's.

    python -m weft_testing.llamacpp_server '{"model": "FILE", "alias": "NAME", "port": 0, …}'

prints its address once it answers, and ends with its standard input.
"""

import importlib
import json
import subprocess
import sys
from typing import Any


class LlamaCppServer:
    """A server that serves from the start of the block to its end, or until it is killed."""

    def __init__(self, model: str, **options: object) -> None:
        """`options`: `alias`, `port`, `context` (tokens of each place), `places`, `key`, `embeddings`."""
        self._options = {"model": model, **options}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        """up to and with /v1"""

    def __enter__(self) -> "LlamaCppServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and again after a kill: on the same port."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "weft_testing.llamacpp_server", json.dumps(self._options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        assert address.startswith("http://"), "llama.cpp's server did not start"
        self._options["port"] = int(address.rpartition(":")[2])
        self.url = f"{address}/v1"

    def kill(self) -> None:
        """End it as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid


def main() -> None:
    """Serve until the standard input ends."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    native: Any = importlib.import_module("xllamacpp")
    places = options.get("places", 4)
    params = native.CommonParams()
    params.model.path = options["model"]
    params.model_alias = {options.get("alias", "tiny")}
    params.n_ctx, params.n_parallel = options.get("context", 512) * places, places
    params.kv_unified = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 16
    params.cache_ram_mib = 0
    params.verbosity = 0
    params.ui = False
    params.hostnames, params.port = ["127.0.0.1"], options.get("port", 0)
    if options.get("key"):
        params.api_keys = [options["key"]]
    if options.get("embeddings"):
        params.embedding = True
        params.n_batch = params.n_ubatch = options.get("context", 512)
    server = native.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
