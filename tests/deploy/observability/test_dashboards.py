"""The dashboards' files: whole, told in words, and laid out so that nothing hides behind anything."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from weft_testing.dashboards import Dashboard, asked, dashboards

GRAFANA = Path(__file__).parents[3] / "deploy" / "observability" / "grafana"
ALL = dashboards(GRAFANA / "dashboards")
WIDTH = 24
UNITS = {"none", "s", "bytes", "Bps", "reqps", "percentunit", "bool_yes_no"}
"""Of Grafana's, those that these panels need."""


def test_there_is_one_for_the_mesh_for_inference_for_nodes_and_for_the_log() -> None:
    assert ["inference.json", "log.json", "mesh.json", "nodes.json"] == [each.file for each in ALL]


@pytest.mark.parametrize("one", ALL, ids=lambda each: each.file)
def test_every_panel_says_what_it_shows_and_in_what(one: Dashboard) -> None:
    titles = [panel.title for panel in one.panels]
    assert len(set(titles)) == len(titles)
    assert one.description
    for panel in one.panels:
        assert panel.description.endswith("."), panel.title
        assert panel.unit in UNITS, panel.title
        assert panel.queries, panel.title
        assert all(panel.legends), panel.title


@pytest.mark.parametrize("one", ALL, ids=lambda each: each.file)
def test_every_query_names_only_variables_that_its_dashboard_has(one: Dashboard) -> None:
    for panel in one.panels:
        for query in panel.queries:
            assert "$" not in asked(query, one.variables)


@pytest.mark.parametrize("one", ALL, ids=lambda each: each.file)
def test_no_panel_lies_over_another(one: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in one.document["panels"]:
        at: dict[str, int] = panel["gridPos"]
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        assert not own & taken, panel["title"]
        taken |= own
    assert len({panel["id"] for panel in one.document["panels"]}) == len(one.panels)


def test_grafana_is_told_of_the_prometheus_and_of_the_folder() -> None:
    def read(name: str) -> Any:
        return yaml.safe_load((GRAFANA / "provisioning" / name).read_text())

    (source,) = read("datasources/prometheus.yml")["datasources"]
    assert ("prometheus", "http://prometheus:9090") == (source["type"], source["url"])
    scrape = yaml.safe_load((GRAFANA.parent / "prometheus" / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert scrape == source["jsonData"]["timeInterval"]
    (provider,) = read("dashboards/weft.yml")["providers"]
    assert ("file", "/etc/grafana/dashboards") == (provider["type"], provider["options"]["path"])
