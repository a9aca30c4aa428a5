"""An inspection is answered by what the log takes, whatever was found."""

from weft_contracts import codec, subjects
from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import SourceFile
from weft_contracts.facts.values import MetadataFile, Weights
from weft_contracts.ids import CorrelationId, InspectionId
from weft_worker_agent.domain.inspection_answers import MOST_REASON, answerable, file_missing

from .conftest import NODE

ID = InspectionId("q-1")
SOURCE = "hf:o/many"
FOUND = FileFound(inspection=ID, source=SOURCE, size=1, weights=Weights(format="safetensors"))


def encoded(fact: FileFound | FileMissing) -> bytes:
    return codec.encode(Commit(subjects.machine(NODE), (fact,), None, Cause(CorrelationId("c-1"))))


def test_what_the_log_takes_is_answered_as_it_is() -> None:
    assert FOUND == answerable(FOUND)


def test_what_is_too_long_for_a_commit_is_answered_by_a_sentence_and_what_just_fits_is_not() -> None:
    files = tuple(SourceFile(name=f"{number:03}{'x' * 200}", size=1, checksum="") for number in range(480))
    long = answerable(FOUND.model_copy(update={"files": files}))
    assert isinstance(long, FileMissing)
    assert (ID, SOURCE) == (long.inspection, long.source)
    assert "hf:o/many can't be used: what was found of it takes" in long.reason
    assert len(encoded(long)) < 1000
    room = MAX_COMMIT_BYTES - len(encoded(FOUND))
    named = Weights(format="safetensors", architecture="x" * room)
    assert MAX_COMMIT_BYTES == len(encoded(fits := answerable(FOUND.model_copy(update={"weights": named}))))
    assert isinstance(fits, FileFound)
    named = Weights(format="safetensors", architecture="x" * (room + 1))
    assert isinstance(answerable(FOUND.model_copy(update={"weights": named})), FileMissing)


def test_a_text_that_can_t_be_written_is_answered_by_a_sentence() -> None:
    for name in ("a\ud800", "a\0b"):
        file = MetadataFile.model_construct(name=name, size=1, blake3="0" * 64)
        answer = answerable(FOUND.model_copy(update={"metadata": (file,)}))
        assert isinstance(answer, FileMissing)
        assert "holds a text that can't be written down" in answer.reason
        assert encoded(answer)


def test_a_reason_is_bounded_and_can_be_written_and_printed() -> None:
    missing = file_missing(ID, SOURCE, "a\ud800\0\n\x1b[2Jb" + "x" * 100_000)
    assert missing.reason.startswith("a    [2Jb")
    assert MOST_REASON == len(missing.reason)
    assert encoded(missing)
