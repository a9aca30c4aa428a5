"""Runs a mesh under load, has a real Prometheus scrape it as it is shipped, and writes what each panel shows then.

    python bench/dashboards.py [docs/dashboards.md]

Needs Debian's package `prometheus`.
"""

import sys
import tempfile
from math import isfinite
from pathlib import Path
from typing import Any

from weft_testing.dashboards import Dashboard, Panel, asked, dashboards
from weft_testing.prometheus import Prometheus
from weft_testing.seen_mesh import SHIPPED, seen_mesh

BARS = "▁▂▃▄▅▆▇█"
SECONDS, STEP = 40.0, 2.0
ROWS = 6
"""Series of a panel that are shown; how many more there are is told."""
HEAD = """# What the dashboards show
[Four dashboards](../deploy/observability/grafana/dashboards) for Grafana, as files. Grafana is not run here; what \
stands below are their queries' own results. `python bench/dashboards.py` ran a mesh of one worker under load (two \
models, an alias, clients that leave early and one that asks for a model that isn't there); a real Prometheus scraped \
it with [its configuration as shipped](../deploy/observability/prometheus/prometheus.yml), but once a second; each \
query was asked with every variable on *All*. The line is the last 40 seconds, the figure the last of them.

`tests/integration/test_seen_mesh.py` demands that no query is without data.

"""


def main(target: Path) -> None:
    """Write the page."""
    with (
        tempfile.TemporaryDirectory(prefix="weft-dashboards-") as folder,
        seen_mesh(Path(folder)) as (_, prometheus),
    ):
        parts = [page(prometheus, each) for each in dashboards(SHIPPED / "grafana" / "dashboards")]
    target.write_text(HEAD + "\n".join(parts))
    print(f"{target}: {len(parts)} dashboards")


def page(prometheus: Prometheus, dashboard: Dashboard) -> str:
    """One dashboard's section."""
    lines = [f"## {dashboard.title}", f"{dashboard.description} (`{dashboard.file}`)\n"]
    for panel in dashboard.panels:
        lines += [f"**{panel.title}.** {panel.description}", "```", *panel.queries]
        found = [series for query in panel.queries for series in shown(prometheus, dashboard, panel, query)]
        lines += found[:ROWS] + ([f"  and {len(found) - ROWS} more"] if len(found) > ROWS else []) + ["```\n"]
    return "\n".join(lines)


def shown(prometheus: Prometheus, dashboard: Dashboard, panel: Panel, query: str) -> list[str]:
    """A line for each series of a query: its legend, the last seconds, the last figure."""
    legend = panel.legends[panel.queries.index(query)]
    found = prometheus.query_range(asked(query, dashboard.variables), SECONDS, STEP)
    rows = [(named(legend, series["metric"]), figures(series["values"])) for series in found]
    rows = sorted((name, values) for name, values in rows if values)
    unit = "none" if panel.kind == "heatmap" else panel.unit  # there it is the unit of the buckets
    return [f"  {name:<28} {bars(values)}  {told(values[-1], unit)}" for name, values in rows]


def named(legend: str, labels: dict[str, str]) -> str:
    """As Grafana would write it. Nodes' and replicas' ids differ from run to run: names do here."""
    for name, value in labels.items():
        legend = legend.replace("{{" + name + "}}", value)
    while "{{" in legend:
        before, _, rest = legend.partition("{{")
        legend = before + rest.partition("}}")[2]
    return legend.strip() or "(answered)"


def figures(values: list[list[Any]]) -> list[float]:
    """What of a series is a figure."""
    return [float(value) for _, value in values if isfinite(float(value))]


def bars(values: list[float]) -> str:
    """A line of blocks, from 0 to the highest."""
    top = max(values) or 1.0
    return "".join(BARS[min(7, max(0, round(value / top * 7)))] for value in values)


def told(value: float, unit: str) -> str:
    """A figure in its unit."""
    match unit:
        case "bytes" | "Bps":
            size, names = value, iter(("B", "KiB", "MiB", "GiB", "TiB"))
            name = next(names)
            while size >= 1024 and name != "TiB":
                size, name = size / 1024, next(names)
            return f"{size:.4g} {name}" + ("/s" if unit == "Bps" else "")
        case "s":
            return f"{value * 1000:.3g} ms" if value < 1 else f"{value:,.1f} s"
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "reqps":
            return f"{value:.3g}/s"
        case "bool_yes_no":
            return "yes" if value else "no"
        case _:
            return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/dashboards.md"))
