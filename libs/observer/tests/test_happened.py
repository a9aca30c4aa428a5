"""What an observer is told of a fact, and what it may ask for."""

import pytest
from weft_contracts.catalogue import BY_TYPE
from weft_observer.happened import BadPattern, Happened, checked, fits
from weft_observer.otlp.record import ERRORS, WARNINGS, record

from .given import FAILED, HEALTHY, SPAN, TRACE, commit, happened


def test_a_fact_is_told_with_all_that_it_stands_in() -> None:
    told = happened()
    assert "run.failed" == told.name
    assert {
        "sequence": 7,
        "index": 0,
        "at": "2023-11-14T22:13:20.250+00:00",
        "kind": "run",
        "key": "n-one.m-1-1",
        "actor": "n-one",
        "event_id": "e-1",
        "correlation_id": "c-1",
        "causation_id": None,
        "fact": FAILED.model_dump(mode="json"),
    } == told.document()


def test_each_fact_has_one_id_and_no_other_has_it() -> None:
    two = commit(HEALTHY, HEALTHY)
    told = [Happened(HEALTHY, two, 0), Happened(HEALTHY, two, 1), Happened(HEALTHY, commit(HEALTHY, sequence=8), 0)]
    told.append(Happened(HEALTHY, commit(HEALTHY, at=1_800_000_000.0), 0))  # the log was made anew
    assert 4 == len({each.id for each in told})
    assert told[0].id == Happened(HEALTHY, commit(HEALTHY, HEALTHY), 0).id
    assert "." not in told[0].id  # by which the convention joins what is signed


@pytest.mark.parametrize("pattern", ["run.failed", "run.*", "*.failed", "*"])
def test_a_pattern_names_facts(pattern: str) -> None:
    assert fits("run.failed", checked([pattern]))
    assert fits("node.healthy", [pattern]) is (pattern == "*")


@pytest.mark.parametrize("pattern", ["run.exploded", "runs.*", "", "run"])
def test_a_pattern_that_no_fact_fits_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern, match="no fact is called"):
        checked([pattern])


def test_a_record_bears_the_fact_its_place_and_its_trace() -> None:
    made = record(happened())
    assert ("weft.run.failed", "ERROR", 1_700_000_000_250_000_000) == (
        made.event_name,
        made.severity_text,
        made.timestamp,
    )
    assert FAILED.model_dump(mode="json") == made.body
    assert made.attributes is not None
    assert ("weft.ev.run.n-one.m-1-1.failed", 7, "n-one") == tuple(
        made.attributes[f"weft.{name}"] for name in ("subject", "sequence", "actor")
    )
    assert (int(TRACE, 16), int(SPAN, 16)) == (made.trace_id, made.span_id)


def test_what_is_graver_than_a_word_is_in_the_catalogue() -> None:
    names = {f"{kind}.{type_}" for kind, type_ in BY_TYPE}
    assert set() == (ERRORS | WARNINGS) - names
    assert set() == ERRORS & WARNINGS
    assert "INFO" == record(happened(HEALTHY)).severity_text
