"""Placement's page says of each policy that Weft comes with what the code says, and the file that it shows is one."""

import re
from pathlib import Path

import pytest
from weft_contracts.policies import PolicyWeights
from weft_contracts.written_policy import policy_of
from weft_contracts.yaml_document import document
from weft_placement import BUILTIN_POLICIES

PAGE = (
    (Path(__file__).resolve().parents[2] / "libs" / "placement" / "README.md").read_text().partition("## Policies\n")[2]
)


def rows() -> dict[str, dict[str, str]]:
    """What the table says, by policy and row."""
    lines = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in PAGE.split("\n") if line[:1] == "|"]
    head, _, *body = lines
    return {name: {row[0]: row[at] for row in body} for at, name in enumerate(head) if at > 1}


@pytest.mark.parametrize("name", BUILTIN_POLICIES)
def test_the_table_has_each_policys_weights(name: str) -> None:
    policy = BUILTIN_POLICIES[name]
    weights = {scorer: f"{getattr(policy, scorer):g}" for scorer in PolicyWeights.model_fields}
    assert {"apart": policy.apart, **weights, "slots": str(policy.slots)} == rows()[name]


def test_the_table_has_no_policy_that_there_is_not() -> None:
    assert [*BUILTIN_POLICIES] == [*rows()]


def test_the_file_that_is_shown_is_a_policy() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert "night" == policy_of(document(shown)).name
