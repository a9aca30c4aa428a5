"""Which files a node is to have: whoever folds the same facts knows the same, and remembers nothing that is over."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.codec import encode
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts.machine import FilesFailed
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.node import FilesRetired, FilesWanted
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_contracts.file_wishes import (
    MOST_RETIRED,
    NO_FILE_WISHES,
    FileWishes,
    after_files_failed,
    after_files_moved,
    after_files_retired,
    after_files_wanted,
)
from weft_contracts.ids import CorrelationId, ModelId, NodeId
from weft_contracts.subjects import model, node

HUB = HfSource(repository="o/r", revision="c" * 40)
NAMES = ("a", "b", "c")


def wanted(files: str) -> FilesWanted:
    return FilesWanted(files=files, source=HUB, listed=(), bytes=7)


def failed(files: str, reason: str = "the hub is away") -> FilesFailed:
    return FilesFailed(files=files, reason=reason)


STEPS = st.lists(
    st.tuples(st.sampled_from(["want", "keep no more", "remove", "came", "gone", "fail"]), st.sampled_from(NAMES))
)


@given(STEPS)
def test_what_is_wanted_is_never_to_go_and_only_what_is_wanted_and_away_can_have_failed(steps: list[tuple[str, str]]):
    wishes, there = NO_FILE_WISHES, set[str]()
    for step, files in steps:
        match step:
            case "want":
                wishes = after_files_wanted(wishes, wanted(files))
            case "keep no more" | "remove":
                wishes = after_files_retired(wishes, FilesRetired(files=files, remove=step == "remove"), there)
                assert (files in there) == (files in wishes.retired)
            case "came":
                there.add(files)
                wishes = after_files_moved(wishes, files, here=True)
                assert files not in wishes.faults
            case "gone":
                there.discard(files)
                wishes = after_files_moved(wishes, files, here=False)
            case _:
                wishes = after_files_failed(wishes, failed(files))
                assert (files in wishes.wanted) == (files in wishes.faults)
        assert wishes.wanted.keys().isdisjoint(wishes.retired)
        assert wishes.faults.keys() <= wishes.wanted.keys()
        assert wishes.retired.keys() <= there


def test_what_is_asked_for_again_has_not_failed_yet_and_stays():
    wishes = after_files_failed(after_files_wanted(NO_FILE_WISHES, wanted("a")), failed("a"))
    assert {"a": failed("a")} == wishes.faults
    assert FileWishes({"a": wanted("a")}) == after_files_wanted(wishes, wanted("a"))
    going = after_files_retired(wishes, FilesRetired(files="a", remove=True), {"a"})
    assert FileWishes(retired={"a": True}) == going
    assert FileWishes(retired={"a": False}) == after_files_retired(going, FilesRetired(files="a"), {"a"})
    assert FileWishes({"a": wanted("a")}) == after_files_wanted(going, wanted("a"))


def test_of_what_is_to_go_the_newest_are_remembered():
    wishes, there = NO_FILE_WISHES, {str(number) for number in range(MOST_RETIRED + 1)}
    for number in range(MOST_RETIRED + 1):
        wishes = after_files_retired(wishes, FilesRetired(files=str(number), remove=True), there)
    assert MOST_RETIRED == len(wishes.retired)
    assert "0" not in wishes.retired


@given(st.integers(0, 200), st.integers(1, 200), st.text(max_size=40))
def test_what_a_node_is_to_have_takes_no_more_of_a_commit_than_the_spec_that_names_it(files: int, name: int, text: str):
    # given a model with long names and checksums
    listed = tuple(
        SourceFile(name=f"{number:03}{'x' * name}", size=1 << 30, checksum=f"etag:{'y' * 250}")
        for number in range(files)
    )
    spec = ModelSpec(source=HUB, engine="llama.cpp", files=listed)
    accepted = SpecAccepted(name=text, revision=1, spec=spec, digest="0" * 16)
    # when a node is to have it
    size = sum(file.size for file in listed)
    ahead = FilesWanted(files="0" * 16, source=HUB, listed=listed, bytes=size, model_name=text)
    # then
    cause = Cause(CorrelationId("c"))
    of_spec = len(accepted.model_dump_json())
    assert of_spec >= len(ahead.model_dump_json())
    if of_spec < 60_000:
        encode(Commit(model(ModelId("m")), (accepted,), None, cause))
        encode(Commit(node(NodeId("n-x")), (ahead,), None, cause))
