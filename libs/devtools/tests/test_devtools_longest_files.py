"""What took longest is told by file."""

from weft_devtools.longest_files import LEAST_S, by_file


def test_a_file_takes_what_its_tests_and_their_fixtures_take_and_short_ones_are_not_told() -> None:
    told = by_file(
        [
            ("a.py::one", 8.0),
            ("b.py::one[x::y]", 30.0),
            ("a.py::one", 4.0),
            ("c.py::one", LEAST_S - 1),
            ("b.py::two", 1.0),
        ]
    )
    assert [("b.py", 31.0), ("a.py", 12.0)] == told
