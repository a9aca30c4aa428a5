"""Tables that name tests for cases name tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_registrys_readme_names_is_there() -> None:
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", (ROOT / "services/registry/README.md").read_text()))
    code = "\n".join(
        path.read_text() for folder in ("libs", "services", "tests") for path in (ROOT / folder).rglob("test_*.py")
    )
    assert len(named) >= 8
    assert set() == named - set(re.findall(r"def (test_[a-z0-9_]+)\(", code))
