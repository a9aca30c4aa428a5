"""Write the alert rules as the Prometheus operator takes them, out of the files that Prometheus itself reads.

    python deploy/k8s/make_rules.py

A test holds the two equal. It needs PyYAML.
"""

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
RULES = HERE.parent / "observability" / "prometheus" / "rules"
MADE = HERE / "components" / "monitoring" / "rules.yaml"
HEAD = "# Made by make_rules.py out of deploy/observability/prometheus/rules: change those.\n"


def made() -> str:
    """The file's text."""
    groups: list[Any] = []
    for file in sorted(RULES.glob("*.yml")):
        groups += yaml.safe_load(file.read_text())["groups"]
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "weft"},
        "spec": {"groups": groups},
    }
    return HEAD + yaml.safe_dump(rule, sort_keys=False, width=120, allow_unicode=True)


if __name__ == "__main__":
    MADE.write_text(made())
    print(f"{MADE.name}: {len(yaml.safe_load(MADE.read_text())['spec']['groups'])} groups")
