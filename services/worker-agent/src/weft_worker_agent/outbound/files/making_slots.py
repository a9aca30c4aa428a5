"""Makes a model card's files from a GGUF file's header, in a process of its own: that may take seconds, and memory.

`python -m weft_worker_agent.outbound.files.making_slots FILE FOLDER` writes into an empty folder. Status 0: what the
header holds is there; 3: it gives no tokenizer, for the reason on standard error.
"""

import os
import resource
import sys
from pathlib import Path
from typing import Final

NO_TOKENIZER: Final = 3
TEMPLATE: Final = "chat_template.jinja"
MEMORY: Final = 4 << 30
"""Bytes of addresses: 262,144 tokens take a tenth of it."""


def make(path: Path, folder: Path) -> None:
    """Raises NoTokenizer, GgufError and OSError."""
    from weft_gguf.header import read_header
    from weft_prompts.tokens.gguf_slots import tokenizer_slots

    if template := read_header(path).chat_template:
        _write(folder / TEMPLATE, template.encode("utf-8", "surrogatepass"))
    slots = tokenizer_slots(path)
    _write(folder / "tokenizer_config.json", slots.configuration)
    _write(folder / "tokenizer.json", slots.tokenizer)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _main(path: str, folder: str) -> int:
    from weft_gguf.header import GgufError
    from weft_prompts.tokens.refusal import NoTokenizer

    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        make(Path(path), Path(folder))
    except (NoTokenizer, GgufError) as refused:
        print(refused, file=sys.stderr)
        return NO_TOKENIZER
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(*sys.argv[1:]))
