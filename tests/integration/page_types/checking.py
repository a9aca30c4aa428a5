"""TypeScript's checker over the first page's scripts, whose JSDoc names the types of the API's document."""

import json
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..clients import installing
from .declaring import declarations

HERE = Path(__file__).parent
BOUND_S = 240.0
"""It takes some seconds on a quiet machine."""


def faults(document: Mapping[str, Any], folder: Path) -> list[str]:
    """What the scripts read that the document's types don't have, a line each, beginning with the script's name.

    `folder` takes the declarations. Raises NotInstalled where the checker can't be had.
    """
    node = installing.packages(HERE)
    scripts = Path(str(files("weft_gateway.inbound.page").joinpath("files")))
    (folder / "answers.d.ts").write_text(declarations(document))
    settings = json.loads((HERE / "tsconfig.json").read_text())
    settings["include"] = [str(scripts / "*.js"), "answers.d.ts"]
    (folder / "tsconfig.json").write_text(json.dumps(settings))
    command = [node, str(HERE / "node_modules/typescript/bin/tsc"), "--pretty", "false", "-p", str(folder)]
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, timeout=BOUND_S, check=False)
    said = done.stdout.splitlines()
    assert (done.returncode == 0) == (not said), done.stderr
    return said
