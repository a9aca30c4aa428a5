"""Clients that ask a mesh all the while, and what became of what they asked."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import httpx
from weft_testing.containers.composed import Composed, question


class Asked:
    """What became of requests that several clients sent one after the other."""

    def __init__(self, model: str) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self.over = threading.Event()
        self._model = model
        self._lock = threading.Lock()

    def ask(self, client: httpx.Client) -> None:
        """Ask until it is over."""
        while not self.over.is_set():
            try:
                with client.stream("POST", "/v1/chat/completions", json=question(self._model, stream=True)) as said:
                    text = "".join(said.iter_text())
                whole = said.is_success and "[DONE]" in text and "Paris" in text
                problem = None if whole else f"{said.status_code} {text[:500]}"
            except httpx.HTTPError as error:
                problem = repr(error)
            with self._lock:
                if problem is None:
                    self.answered += 1
                else:
                    self.failed.append(problem)


@contextmanager
def asking(mesh: Composed, model: str, streams: int = 2) -> Generator[Asked]:
    """Clients that stream answers all the while."""
    asked = Asked(model)
    with mesh.client() as client:
        threads = [threading.Thread(target=asked.ask, args=(client,)) for _ in range(streams)]
        for each in threads:
            each.start()
        try:
            yield asked
        finally:
            asked.over.set()
            for each in threads:
                each.join(90)
