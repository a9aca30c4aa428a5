"""vLLM's own HTTP server on the processor, in processes of its own: an OpenAI server that is none of Weft's."""

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

import httpx

STARTS_S: Final = 600.0
"""Three processes that import torch, one after another, on a machine that others use."""
KV_BYTES: Final = 64 << 20


class VllmServer:
    """A server that serves from the start of the block to its end."""

    def __init__(self, python: str, model: str, log: Path, *options: str, alias: str) -> None:
        """`python`: of an environment with vLLM and weft-engine, as `vllm_environment` makes; `options`: of the
        server's own command line."""
        self._command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
        self._command += ["--served-model-name", alias, "--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager"]
        self._command += ["--kv-cache-memory-bytes", str(KV_BYTES), "--block-size", "32", *options]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        """up to and with /v1"""

    def __enter__(self) -> "VllmServer":
        port = _free_port()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._command, "--port", str(port)],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_for(port)
        except BaseException:
            self.__exit__()
            raise
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it: what it started ends with it (`weft_engine.vllm_child`)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    @property
    def pid(self) -> int:
        """Of its first process."""
        assert self._process is not None
        return self._process.pid

    def _wait_for(self, port: int) -> None:
        assert self._process is not None
        until = time.monotonic() + STARTS_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"vLLM's server did not start: {self._log.read_text(errors='replace')[-3000:]}")


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "WEFT_ENGINE_PARENT": str(os.getpid()),  # it ends with who started it
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TORCHDYNAMO_DISABLE": "1",  # else the first log probabilities wait for a C++ compiler
        "VLLM_HOST_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
