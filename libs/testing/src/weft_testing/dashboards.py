"""The dashboards as files: their panels, and each query as Grafana would ask it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RATE = "1m"
"""Four scrapes: what Grafana puts in the place of `$__rate_interval`."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a dashboard."""

    title: str
    description: str
    unit: str
    kind: str
    queries: tuple[str, ...]
    """With `$model` and the like in them."""
    legends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One file."""

    file: str
    title: str
    description: str
    variables: tuple[str, ...]
    panels: tuple[Panel, ...]
    document: dict[str, Any]


def dashboards(folder: Path) -> list[Dashboard]:
    """All of a folder, by their files' names."""
    return [_dashboard(path) for path in sorted(folder.glob("*.json"))]


def asked(query: str, variables: tuple[str, ...]) -> str:
    """A query with everything chosen. Raises KeyError for a variable that the dashboard doesn't have."""
    values = {"__rate_interval": RATE, **dict.fromkeys(variables, ".*")}
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]], query)


def _dashboard(path: Path) -> Dashboard:
    document = json.loads(path.read_text())
    variables = tuple(each["name"] for each in document["templating"]["list"] if each["type"] != "datasource")
    panels = tuple(
        Panel(
            panel["title"],
            panel.get("description", ""),
            panel["fieldConfig"]["defaults"].get("unit", ""),
            panel["type"],
            tuple(target["expr"] for target in panel["targets"]),
            tuple(target["legendFormat"] for target in panel["targets"]),
        )
        for panel in document["panels"]
    )
    return Dashboard(path.name, document["title"], document["description"], variables, panels, document)
