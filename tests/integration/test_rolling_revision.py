"""A new revision takes the place of another while requests come all the time, and none of them fails: with room for one
more, without any, where it doesn't become ready, and back again.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from weft_reconciler.domain.verify import verify
from weft_testing.log_pages import commits
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 4,
    "min_replicas": 2,
    "max_replicas": 2,
}
CLIENTS = 3


ROOM, PART = "2900MB", 1_000_000_000
"""For two replicas of so many bytes beside what a new mesh runs, and not for three."""


@pytest.fixture(scope="module", name="mesh")
def a_mesh_of_one_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    with MeshUnderTest(tmp_path_factory.mktemp("rolling")) as mesh:
        yield mesh


def serving(mesh: MeshUnderTest, model: str) -> list[int]:
    """Of which revisions its ready replicas are."""
    return sorted(each["revision"] for each in mesh.ready_replicas(model))


def all_of(mesh: MeshUnderTest, model: str) -> list[tuple[int, str]]:
    return sorted((each["revision"], each["state"]) for each in mesh.replicas() if each["model_name"] == model)


def revision(mesh: MeshUnderTest, model: str, milliseconds: int, **more: Any) -> None:
    """Ask for one that differs in how fast it is."""
    args = {"ms_per_token": milliseconds, "load_seconds": 1, **more}
    mesh.deploy(model, {**SPEC, "engine_args": args}).raise_for_status()


def why(mesh: MeshUnderTest, model: str, type_: str) -> list[str]:
    id = mesh.http.get(f"{mesh.url}/api/models/{model}").json()["id"]
    return [each["fact"]["why"] for each in mesh.facts("model", type_) if each["key"] == id]


class Load:
    """Clients that ask one after the other until the block ends. Then each of their requests was answered."""

    def __init__(self, mesh: MeshUnderTest, model: str) -> None:
        self._mesh, self._model = mesh, model
        self._ended = threading.Event()
        self.statuses = Counter[int]()
        self.refusals: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        until("requests are answered", lambda: self.statuses[200] > CLIENTS)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def more(self) -> None:
        """Wait until as many again were answered as there are clients."""
        least = self.statuses[200] + CLIENTS
        until("requests go on being answered", lambda: self.statuses[200] > least)

    def _ask(self) -> None:
        while not self._ended.is_set():
            said = self._mesh.chat("Tell me a story.", self._model, max_tokens=20, ignore_eos=True)
            self.statuses[said.status_code] += 1
            if said.status_code != 200:
                self.refusals.append(f"{said.status_code} {said.text[:300]}")


@pytest.mark.slow
@pytest.mark.sabotage("slow-revisions-stay")
def test_a_new_revision_takes_over_and_is_taken_back_under_load_without_a_failed_request(mesh: MeshUnderTest) -> None:
    # given a model of two that answers all the time
    revision(mesh, "rolled", 20)
    until("both serve", lambda: serving(mesh, "rolled") == [1, 1], 40)
    with Load(mesh, "rolled") as load:
        # when a new revision is asked for: then it takes over, one after another
        revision(mesh, "rolled", 10)
        until("the new one serves alone", lambda: all_of(mesh, "rolled") == [(2, "ready")] * 2, 60)
        load.more()

        # when one is asked for that stops starting: then the one before goes on
        revision(mesh, "rolled", 10, fail_load="bogus is no argument")
        until("it is taken back", lambda: len(why(mesh, "rolled", "rolled_back")) == 1, 40)
        load.more()
        assert [2, 2] == serving(mesh, "rolled")

        # when one is asked for that takes for ever: then it is, too, by its deadline
        mesh.http.patch(f"{mesh.url}/api/scheduling/rolled", json={"progress_s": 5}).raise_for_status()
        revision(mesh, "rolled", 10, load_seconds=300)
        until("it is taken back", lambda: len(why(mesh, "rolled", "rolled_back")) == 2, 40)
        load.more()
        mesh.http.patch(f"{mesh.url}/api/scheduling/rolled", json={"progress_s": 600}).raise_for_status()

        # when the first one is asked for again: then it serves, as the next one
        said = done(mesh, "rollback", "rolled", "--to", "1")
        assert said.startswith("rolled is as in revision 1 again, which is revision 5 now\n")
        until("it serves alone", lambda: all_of(mesh, "rolled") == [(5, "ready")] * 2, 60)
        load.more()

    # and no request failed in all of that
    assert {200} == set(load.statuses), load.refusals
    causes = why(mesh, "rolled", "rolled_back")
    assert ["bogus is no argument", "asked for: revision 5 is as revision 1"] == [causes[0], causes[2]]
    assert causes[1].startswith("no more of it were ready within 5 s; "), causes[1]
    found = verify(commits(mesh.http, mesh.url))
    assert ([], 3) == (found.mismatches, found.decisions["rolled_back"])

    # and what there isn't, is refused in a sentence
    refused = mesh.weft("rollback", "rolled", "--to", "99")
    assert 1 == refused.returncode
    assert refused.stderr.strip().endswith("rolled has no revision 99: it has 1 to 5"), refused.stderr


@pytest.mark.slow
@pytest.mark.sabotage("nothing-goes-first")
def test_without_room_for_one_more_each_goes_first_if_it_may_and_the_other_answers(mesh: MeshUnderTest) -> None:
    # given a model of two, and a node that has room for no third of it
    [node] = mesh.status()["nodes"]
    done(mesh, "nodes", "vram-budget", node["name"], ROOM)
    revision(mesh, "tight", 20, memory_bytes=PART)
    until("both serve", lambda: serving(mesh, "tight") == [1, 1], 40)
    with Load(mesh, "tight") as load:
        # when a new revision is asked for: then it waits, since nothing goes before another serves
        revision(mesh, "tight", 10, memory_bytes=PART)
        stands = [(1, "ready"), (1, "ready"), (2, "unplaceable")]
        until("it has no place", lambda: all_of(mesh, "tight") == stands, 40)
        load.more()
        assert stands == all_of(mesh, "tight")

        # when one may be missing: then one goes first, and after it the other
        done(mesh, "deploy", "simulated", "--name", "tight", *_AS_IT_IS, "--max-unavailable", "1", "--wait", "0")
        until("the new one serves alone", lambda: all_of(mesh, "tight") == [(2, "ready")] * 2, 60)
        load.more()

    assert {200} == set(load.statuses), load.refusals
    first = [each for each in why(mesh, "tight", "scaled") if "goes first" in each]
    assert 2 == len(first), first
    assert first[0].endswith("goes first: there is no room for one more, and 1 may be missing")


_AS_IT_IS = (
    *("--engine-arg", "ms_per_token=10", "--engine-arg", "load_seconds=1"),
    *("--engine-arg", f"memory_bytes={PART}"),
    *("--concurrency", "4", "--replicas", "2"),
)
