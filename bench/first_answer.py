"""Seconds from the start of `weft up` to the first answer over HTTP, by part. Goal, when installed: 10 s.

    python bench/first_answer.py [--runs 3] [--whole]

Each run takes a new state (trust, database and log are founded, the built-in model is deployed) and then the same
state again. The question is asked every 50 ms until it is answered with Paris. The parts' seconds are those that the
launcher prints. `--whole` goes on with all else that a first answer costs people, each by its own script: the size of
the install, the time that Weft adds to the first token, the first page's weight.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
from weft_embedded.builtin import NAME, QUESTION
from weft_servers import port

ANSWER_S = 180.0
STOP_S = 90.0
STEP_S = 0.05
BESIDES = (
    ("the install", "install.py", ()),
    ("the first token, against the engine in-process", "streams.py", ("--seconds", "4", "--rounds", "3")),
    ("the first page", "page.py", ()),
)
_PART = re.compile(r"^  (\S.*?) +(\d+\.\d) s  (.*)$", re.MULTILINE)


def answer(url: str, since: float) -> float:
    """Seconds from `since` to the first right answer. Raises TimeoutError."""
    body = {"model": NAME, "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
    last = ""
    with httpx.Client(timeout=30.0) as http:
        while time.perf_counter() - since < ANSWER_S:
            try:
                response = http.post(f"{url}/v1/chat/completions", json=body)
                last = response.text
                if response.status_code == 200 and "Paris" in last:
                    return time.perf_counter() - since
            except httpx.TransportError as error:
                last = repr(error)
            time.sleep(STEP_S)
    raise TimeoutError(f"no answer within {ANSWER_S:g} s; the last one: {last[:300]}")


def parts(said: str) -> Iterator[tuple[str, float]]:
    """What the launcher printed: `gateway ready`, 3.2 and so on."""
    for name, seconds, what in _PART.findall(said):
        if "starting" not in what:
            yield f"{name}: {what.split(' at ')[0][:40]}", float(seconds)


def cpu_of_all(launcher: int) -> float:
    """CPU seconds of a launcher and all below it, those that have ended included. Half of it is the least that two
    idle cores need."""
    spent = 0.0
    process = psutil.Process(launcher)
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent


def once(state: Path, gateway_port: int) -> dict[str, float]:
    """One start to the first answer, and its end. Seconds by what they were taken for."""
    output = state.parent / "launcher.out"
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    words = [sys.executable, "-m", "weft_cli", "up", "--state", str(state), "--port", str(gateway_port)]
    with output.open("wb") as out:
        since = time.perf_counter()
        launcher = subprocess.Popen(
            words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=kept, start_new_session=True
        )
        try:
            found = {"first answer": answer(f"http://127.0.0.1:{gateway_port}", since)}
            found["CPU by then, all processes together"] = cpu_of_all(launcher.pid)
            while "Weft serves at" not in output.read_text() and time.perf_counter() - since < ANSWER_S:
                time.sleep(STEP_S)
            found["the launcher says that it serves"] = time.perf_counter() - since
        finally:
            launcher.terminate()
            try:
                launcher.wait(STOP_S)
            except subprocess.TimeoutExpired:
                launcher.kill()
                launcher.wait()
    return found | dict(parts(output.read_text()))


def show(what: str, runs: list[dict[str, float]]) -> None:
    """Medians, and the fastest and slowest run."""
    print(f"\n{what}: seconds, median of {len(runs)} (least to most)   load average {os.getloadavg()[0]:.1f}")
    rows = [(key, [run[key] for run in runs if key in run]) for key in runs[0]]
    for key, figures in sorted(rows, key=lambda row: statistics.median(row[1])):
        print(f"  {key:<56}{statistics.median(figures):>6.1f}  ({min(figures):.1f} to {max(figures):.1f})")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="the size, the first token and the page as well")
    parser.add_argument("--json", action="store_true", help="every run's figures as JSON instead")
    given = parser.parse_args()
    (gateway_port,) = port.choose(1)
    fresh: list[dict[str, float]] = []
    again: list[dict[str, float]] = []
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
            state = Path(folder) / "state"
            fresh.append(once(state, gateway_port))
            again.append(once(state, gateway_port))
    if given.json:
        print(json.dumps({"fresh": fresh, "existing": again}, indent=1))
        return
    show("a new state", fresh)
    show("the same state again", again)
    for what, script, words in BESIDES if given.whole else ():
        print(f"\n{what}: {script}", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(script)), *words], check=True)


if __name__ == "__main__":
    main()
