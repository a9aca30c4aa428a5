"""The policy of placement as settings."""

from dataclasses import fields
from pathlib import Path

import pytest
from weft_placement import Policy
from weft_scheduler.settings import SchedulerSettings

README = Path(__file__).resolve().parents[2] / "README.md"
FIELDS = [entry.name for entry in fields(Policy)]


@pytest.mark.parametrize("name", FIELDS)
def test_each_part_of_the_policy_is_a_setting_of_the_same_default_with_a_row_in_the_readme(name: str) -> None:
    default = SchedulerSettings.model_fields[f"placement_{name}"].default
    assert getattr(Policy(), name) == default
    assert f"| `WEFT_PLACEMENT_{name.upper()}` | {default} |" in README.read_text()


def test_no_setting_is_for_a_weight_that_the_policy_lacks() -> None:
    named = {name for name in SchedulerSettings.model_fields if name.startswith("placement_")}
    assert {f"placement_{name}" for name in FIELDS} == named
