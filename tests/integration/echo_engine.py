"""The echo, an engine that Weft knows nothing of: its package, and what a mesh must be told to install it."""

import json
from pathlib import Path
from typing import Any

from weft_testing.wheels import write_wheel

_ECHO = Path(__file__).parents[1] / "packages" / "echo" / "weft_echo"
_PROFILE: dict[str, Any] = {
    "name": "echo",
    "serves": ["chat"],
    "formats": ["gguf"],
    "vendors": ["cpu"],
    "claim": {"formula": "header", "slack": 0.5, "overhead": 0, "cpu_overhead": 3145728},
    "resumes_greedy": True,
    "arguments": {"times": {"type": "integer", "least": 1, "most": 3}},
    "install": {"package": "weft-echo", "adapter": "weft_echo.adapter:Echo"},
}


def echo_wheel(folder: Path, version: str, weights: int = 0) -> Path:
    """Its package, with so many bytes of no use in it."""
    files = {f"weft_echo/{path.name}": path.read_text() for path in _ECHO.glob("*.py")}
    if weights:
        files["weft_echo/weights.txt"] = "0" * weights
    entry = "[weft.engines]\necho = weft_echo.profile:PROFILE\n"
    return write_wheel(folder, "weft-echo", version, files, entry_points=entry)


def echo_entry(folder: Path, version: str, *more: str, disk: int = 50_000_000) -> Path:
    """A catalogue's entry of it in this version, as a file; `more` is required, too. `disk`: bytes, as it says."""
    requirements = [f"weft-echo=={version}", *more]
    variant = {"vendor": "cpu", "package": "weft-echo", "version": version, "requirements": requirements, "disk": disk}
    entry = folder / "echo.json"
    entry.write_text(json.dumps({"profile": _PROFILE, "recipe": {"engine": "echo", "variants": [variant]}}))
    return entry
