"""llama.cpp called from a process of its own, with no mesh around: what `streams.py` holds the mesh against.

    python bench/in_process.py GGUF --streams 32 --seconds 10 --tokens 128 [--chat] [--spread]

The same file and the same settings as an engine host's, one engine thread; a thread for each stream that calls the
engine and counts. The prompt is rendered beforehand, once: the engine is spared what the mesh does for each request.
With --chat it is not spared: each request is the chat that the mesh's clients send, by the binding's own call for it.
Prints one JSON line: requests, tokens, seconds, the process's CPU seconds, its threads' voluntary switches, and each
request's seconds to its first token.
"""

import argparse
import json
import resource
import threading
import time

from load import QUESTION, lengths
from weft_contracts.gen import session_pb2 as pb
from weft_engine.adapters.llamacpp_native import NativeServer
from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.adapters.llamacpp_tokenizer import LlamaCppTokenizer
from weft_engine.launch import Launch

CONTEXT, CONCURRENCY = 512, 32
NO_TEXT = '"content":null'


def served(path: str) -> tuple[NativeServer, str]:
    """A server of the file, and the rendered prompt."""
    launch = Launch(
        replica="bench",
        incarnation="bench",
        node="bench",
        revision_digest="bench",
        engine="llama.cpp",
        model_path=path,
        context_tokens=CONTEXT,
        concurrency=CONCURRENCY,
    )
    server = NativeServer(launch, LlamaCppSettings(), embeddings=False)
    chat = pb.Chat(messages=[pb.Message(role="user", content=QUESTION)])
    return server, LlamaCppTokenizer(server.address, server.key).render(chat)


def gave_up() -> int:
    """How often this process's threads gave the core up."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def main() -> None:
    """Warm up, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--chat", action="store_true", help="ask for chats instead of completions of a rendered prompt")
    parser.add_argument("--spread", action="store_true", help="answers of half to three halves as many tokens")
    given = parser.parse_args()
    server, prompt = served(given.gguf)
    asked: dict[str, object] = {
        "stream": True,
        "temperature": 0.8,
        "ignore_eos": True,
        **({"messages": [{"role": "user", "content": QUESTION}]} if given.chat else {"prompt": prompt}),
    }
    complete = server._server.handle_chat_completions if given.chat else server.complete
    firsts: list[float] = []
    made: list[int] = []

    def one(until: float, number: int = 0) -> None:
        for tokens in lengths(given.tokens, number, spread=given.spread):
            if time.perf_counter() >= until:
                break
            request = json.dumps({**asked, "max_tokens": tokens})
            began, first = time.perf_counter(), 0.0

            def heard(chunk: str, began: float = began) -> bool:
                nonlocal first
                if not first and NO_TEXT not in chunk:  # a chat opens with the role alone
                    first = time.perf_counter() - began
                return False

            complete(request, heard)
            firsts.append(first)
            made.append(tokens)

    one(time.perf_counter() + 0.1)
    firsts.clear()
    made.clear()
    began, cpu, switches = time.perf_counter(), time.process_time(), gave_up()
    threads = [threading.Thread(target=one, args=(began + given.seconds, n)) for n in range(given.streams)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    spent, wall = time.process_time() - cpu, time.perf_counter() - began
    switches = gave_up() - switches
    found = {"requests": len(firsts), "tokens": sum(made), "seconds": wall, "cpu": spent, "switches": switches}
    print(json.dumps({**found, "first": firsts}))
    server.close()


if __name__ == "__main__":
    main()
