"""The largest that may be placed fits the log's commits, or is told in one sentence why it doesn't."""

from typing import TypeVar

from weft_contracts.backends import BackendRecipe, BackendVariant, fault_of_recipe
from weft_contracts.backends.recipe import MOST_BYTES
from weft_contracts.codec import encode
from weft_contracts.commit import MAX_COMMIT_BYTES, Commit
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.facts.values import Installs, ModelSpec, Weights
from weft_contracts.formats import READS
from weft_contracts.source_faults import MOST_FILES_BYTES, fault_of_files
from weft_contracts.subjects import MESH, machine
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
SHARDS = tuple(
    SourceFile(name=f"model-{number:05}-of-00200.safetensors", size=GIB // 100, checksum=f"sha256:{number:064x}")
    for number in range(200)
)


VLLM = BUILTIN["vllm"]
F = TypeVar("F", bound=Fact)


def large_recipe() -> BackendRecipe:
    """One variant, locked to as many hashes as a recipe has room for."""
    recipe = next(made for count in range(256, 0, -1) if fault_of_recipe(made := _recipe(count), VLLM) is None)
    assert MOST_BYTES - 100 < len(recipe.model_dump_json()) <= MOST_BYTES
    return recipe


def _recipe(count: int) -> BackendRecipe:
    hashes: dict[str, list[str]] = {}
    for number in range(count):
        hashes.setdefault(f"package-{number // 64}==1", []).append(f"sha256:{number:064x}")
    variant = BackendVariant.model_validate(
        {"vendor": "nvidia", "package": "vllm", "version": "1", "hashes": hashes, "disk": 1}
        | {"requirements": [*hashes, "vllm"]}
    )
    return BackendRecipe(engine="vllm", variants=(variant,))


def placing(files: tuple[SourceFile, ...], selector: dict[str, str]) -> list[Commit]:
    """What a scheduler says of a model of these files, for which a node must install an engine first, while many other
    nodes can't take it."""
    log, state = FleetLog(), State()
    recipe = large_recipe()
    log.add(MESH, BackendSet(recipe=recipe))
    labels = {key: value for key, value in selector.items() if not key.startswith("!")}
    for name in ("a", "b", "c", *(f"small-{each}" for each in range(40))):
        size = 80 * GIB if len(name) == 1 else GIB // 100 * (int(name.rpartition("-")[2]) + 1)
        node = log.node(name, *[size] * 8, engines=(), labels=labels)
        view = log.fleet.nodes[node]
        assert view.hardware is not None
        installs = Installs(disk_free=1 << 50)
        found = Reported(
            hardware=view.hardware, backends=(), builtins=(), agent_version="1", installs=installs, reads=dict(READS)
        )
        log.add(machine(node), found)
    weights = Weights(format="safetensors", weight_bytes=2 * GIB, kv_bytes_per_token=8, layers=80, heads=64, kv_heads=8)
    body = {"source": HfSource(repository="o/" + "r" * 90, revision="c" * 40), "engine": "vllm", "weights": weights}
    arguments = {"tensor_parallel_size": 8}
    spec = ModelSpec.model_validate({**body, "files": files, "selector": selector, "engine_args": arguments})
    log.model("n" * 255, spec, replicas=1)
    state.fold(log.commits)
    return [commit for decision in decide(state, Rules(), 1000.0, 7, {}) for commit in decision.commits]


def of(commits: list[Commit], kind: type[F]) -> list[F]:
    return [fact for commit in commits for fact in commit.facts if isinstance(fact, kind)]


def test_two_hundred_shards_fit_their_commit_with_the_largest_recipe_and_the_receipt() -> None:
    commits = placing(SHARDS, {})
    (assigned,), (placed,) = of(commits, Assigned), of(commits, Placed)
    assert (SHARDS, 8) == (assigned.spec.files, len(assigned.members[0].devices))
    assert assigned.backend is not None
    assert {40} == {*placed.receipt.refusals.values()}
    sizes = [len(encode(commit)) for commit in commits]
    assert max(sizes) > MAX_COMMIT_BYTES // 2


def test_what_is_too_large_together_is_told_in_one_sentence_and_nothing_is_sent() -> None:
    # given as many files as a model may have, beside the largest recipe and selector
    one = SourceFile(name="n" * 200 + "-000", size=1, checksum=SHARDS[0].checksum)
    count = MOST_FILES_BYTES // (len(one.model_dump_json()) + 1)
    files = tuple(one.model_copy(update={"name": f"{'n' * 200}-{each:03}"}) for each in range(count))
    assert fault_of_files(files) is None
    # when
    commits = placing(files, {f"label-{number}": "v" * 250 for number in range(58)})
    # then
    (told,) = of(commits, Unplaceable)
    assert [] == of(commits, Assigned)
    assert told.reason.startswith("its assignment takes ")
    assert f"{MAX_COMMIT_BYTES} are allowed: shorten the spec" in told.reason
    assert all(encode(commit) for commit in commits)
