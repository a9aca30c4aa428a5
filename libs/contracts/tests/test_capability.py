"""What a spec asks of a device, and which devices have it."""

import pytest
from weft_contracts.capability import capable, fault_of_capability, told_capabilities


@pytest.mark.parametrize(
    ("vendor", "has", "wanted", "expected"),
    [
        ("nvidia", "8.9", ("8.9",), True),
        ("nvidia", "9.0", ("8.9",), True),
        ("nvidia", "10.0", ("9.0",), True),
        ("nvidia", "8.6", ("8.9",), False),
        ("nvidia", "8.6", ("gfx942", "8.0"), True),
        ("nvidia", "strange", ("8.0",), False),
        ("amd", "gfx942", ("gfx942",), True),
        ("amd", "gfx90a:sramecc+:xnack-", ("gfx90a",), True),
        ("amd", "gfx942", ("gfx94",), False),
        ("amd", "gfx942", ("9.0",), False),
        ("nvidia", None, ("8.0",), False),
        ("cpu", "9.0", ("8.0",), False),
    ],
)
def test_numbers_are_at_least_and_architectures_are_exact(
    vendor: str, has: str | None, wanted: tuple[str, ...], expected: bool
) -> None:
    assert expected is capable(vendor, has, wanted)


@pytest.mark.parametrize("text", ["", "9", "8.9.1", "sm_89", "gfx", "GFX942", "8.x"])
def test_what_is_neither_is_refused_with_what_is_right(text: str) -> None:
    assert "such as 8.9, or an architecture such as gfx942" in (fault_of_capability(text) or "")


def test_what_is_asked_is_told_in_words() -> None:
    assert "compute capability 8.9 or higher or gfx942" == told_capabilities(("8.9", "gfx942"))
