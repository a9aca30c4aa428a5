"""What the first page's scripts read is what the API's document says: a field under another name is told by its script.

The checker comes from the registry into an ignored folder; see clients/installing.py.
"""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest

from .clients import installing
from .page_types import checking

pytestmark = pytest.mark.slow


def faults(document: Mapping[str, Any], folder: Path) -> list[str]:
    """What the checker says. Where it can't be had the test is skipped; under CI it fails."""
    try:
        return checking.faults(document, folder)
    except installing.NotInstalled as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error}")
        pytest.skip(f"the checker can't be had: {error}")


READ = [
    ("ShownReplicaLine", "node_name", "mesh.js"),
    ("Log", "position", "link.js"),
    ("Commit", "facts", "events.js"),
    ("Weights", "embeds", "chat.js"),
    ("AliasTarget", "wanted", "aliases.js"),
    ("FilesOnNode", "used_by", "files.js"),
    ("Problem", "detail", "link.js"),
    ("Remedy", "alike", "remedies.js"),
]
"""Fields that scripts read, by their type."""


def renamed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it would be if those fields bore other names."""
    changed = copy.deepcopy(dict(document))
    for kind, field, _ in READ:
        schema = changed["components"]["schemas"][kind]
        schema["properties"]["other"] = schema["properties"].pop(field)
        schema["required"] = ["other" if name == field else name for name in schema["required"]]
    return changed


@pytest.mark.sabotage("renamed-answer")
def test_the_pages_scripts_read_what_the_api_answers_and_nothing_else(calm_mesh: MeshUnderTest, tmp_path: Path) -> None:
    # given the document of a running gateway
    document = calm_mesh.http.get(f"{calm_mesh.url}/openapi.json").json()
    # when the page's scripts are held against its types, then they fit
    assert [] == faults(document, tmp_path)
    # and when fields that scripts read bear other names, then each of these scripts is told
    said = faults(renamed(document), tmp_path)
    for _, field, script in READ:
        assert any(script in line and f"'{field}'" in line for line in said), (field, said)
