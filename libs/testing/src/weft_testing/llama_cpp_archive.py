"""What llama.cpp tests itself with: chat templates and vocabularies, from a source archive of one exact content.

Fetched by pip once on a machine, for all trees and workers; only what tests read is unpacked.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

REQUIREMENT: Final = "llama-cpp-python==0.3.36"
SHA256: Final = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
"""Of its source archive."""
WANTED: Final = re.compile(
    r"llama_cpp_python-0\.3\.36/vendor/llama\.cpp/models/"
    r"((?:templates/[\w.-]+\.jinja)|(?:ggml-vocab-[\w.-]+\.gguf(?:\.inp|\.out)?))"
)
MOST_BYTES: Final = 64 << 20
"""Of one unpacked file."""
FETCH_S: Final = 600.0


def llama_cpp_archive() -> Path:
    """A folder with `templates/*.jinja` and `ggml-vocab-*.gguf` (some with `.inp` and `.out` beside), whole.

    It lies in the machine's folder for temporary files and stays; nobody may write in it.
    """
    shelf = Path(tempfile.gettempdir()) / f"weft-test-engines-{os.getuid()}"
    shelf.mkdir(mode=0o700, exist_ok=True)
    whole = shelf / f"llama-cpp-{SHA256[:16]}"
    with (shelf / f"{whole.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.is_dir():
            half = shelf / f"{whole.name}.half"
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            with tempfile.TemporaryDirectory(dir=shelf) as fetched:
                _unpack(_fetch(Path(fetched)), half)
            half.rename(whole)
    return whole


def _fetch(folder: Path) -> Path:
    """The archive, by pip's own settings; pip makes its metadata once the content is known to be the one meant."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{REQUIREMENT} --hash=sha256:{SHA256}\n")
    words = ("download", "--no-deps", "--no-binary", "llama-cpp-python", "--require-hashes", "-r", str(wanted))
    done = subprocess.run(
        [f"{sys.base_prefix}/bin/python3", "-m", "pip", "--quiet", *words, "--dest", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_S,
    )
    if done.returncode:
        raise AssertionError(f"pip could not fetch {REQUIREMENT}: {done.stderr[-2000:]}")
    archive = next(folder.glob("*.tar.gz"))
    with archive.open("rb") as content:
        assert hashlib.file_digest(content, "sha256").hexdigest() == SHA256
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    """Plain files of wanted names alone, none above MOST_BYTES."""
    (folder / "templates").mkdir()
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            found = WANTED.fullmatch(member.name)
            if found is None or not member.isreg():
                continue
            assert member.size <= MOST_BYTES, f"{member.name} has {member.size} bytes"
            content = members.extractfile(member)
            assert content is not None
            with (folder / found[1]).open("xb") as out:
                shutil.copyfileobj(content, out)
