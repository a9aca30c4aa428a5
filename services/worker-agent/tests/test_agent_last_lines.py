"""What of an engine's log may stand in the event log."""

import json
from pathlib import Path

import pytest
from weft_worker_agent.domain.last_lines import LONGEST, MOST_BYTES, MOST_LINES, last_lines, masked, telling
from weft_worker_agent.domain.process_ends import MemoryKills
from weft_worker_agent.outbound.machine.memory_kills import memory_kills


def test_lines_of_an_engines_own_are_kept_as_they_are() -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "/x/core.py", line 7, in step',
        "RuntimeError: out of memory",
    ]
    assert tuple(line.strip() for line in traceback) == last_lines(["", *traceback])


def test_of_the_hosts_own_log_lines_only_what_went_wrong_is_kept_and_no_field() -> None:
    lines = [
        json.dumps({"level": "info", "event": "session opened", "gateway": "g-1"}),
        json.dumps({"level": "warning", "event": "canary failed", "reason": "no kernel", "prompt": "hush"}),
        json.dumps({"level": "error", "event": "submit failed", "exception": "Traceback\n  File\nValueError: bad"}),
    ]
    assert ("no kernel", "submit failed: ValueError: bad") == last_lines(lines)


def test_they_are_few_and_short() -> None:
    lines = last_lines([f"{number} " + "x y " * 100 for number in range(100)])
    assert LONGEST == len(lines[-1])
    assert (MOST_LINES, MOST_BYTES) >= (len(lines), sum(len(line.encode()) + 1 for line in lines))
    assert lines[-1].startswith("99 ")
    assert MOST_LINES == len(last_lines(["short"] * 100))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("401 for Authorization: Bearer abcdef.123456-x", "401 for Authorization: … …"),
        ("asked with Bearer abcdef.123456-x", "asked with Bearer …"),
        ("OPENAI_API_KEY=abc123 is set", "OPENAI_API_KEY=… is set"),
        ("{'hf_token': 'hf_abcdefghijklmnop'}", "{'hf_token': …'}"),
        ("key sk-proj-0123456789abcdef was refused", "key … was refused"),
        ("GET https://me:pass@host/x", "GET https://…@host/x"),
        ("digest 0123456789abcdef0123456789abcdef0123456789abcdef", "digest …"),
        (f"ValueError: can't tokenize '{'my secret plan ' * 6}' here", "ValueError: can't tokenize '…' here"),
        ("no such file '/models/a.gguf'", "no such file '/models/a.gguf'"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_what_looks_like_a_key_or_like_somebodys_words_is_left_out(line: str, expected: str) -> None:
    assert expected == masked(line)
    assert expected == telling(f"  {line}\n")


@pytest.mark.parametrize(
    ("cgroup", "folder", "file"),
    [
        ("0::/system.slice/weft.service", "system.slice/weft.service", "memory.events"),
        ("0::/above/of/this/namespace", "", "memory.events"),
        ("9:cpu:/a\n4:memory:/b/c\n0::/", "memory/b/c", "memory.oom_control"),
    ],
)
def test_the_kernels_kills_for_memory_are_counted(tmp_path: Path, cgroup: str, folder: str, file: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(cgroup + "\n")
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 1\noom_kill 7\n")
    counted = tmp_path / "sys/fs/cgroup" / folder
    counted.mkdir(parents=True)
    (counted / file).write_text("oom_kill_disable 0\nunder_oom 0\noom 3\noom_kill 2\n")

    assert MemoryKills(2, 7) == memory_kills(tmp_path)
    assert MemoryKills(1, 2) == memory_kills(tmp_path).since(MemoryKills(1, 5))


def test_a_system_that_tells_nothing_counts_none(tmp_path: Path) -> None:
    assert MemoryKills() == memory_kills(tmp_path)
