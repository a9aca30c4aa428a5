"""What the fleet knows of engines: built-in ones, and what the log tells."""

from weft_contracts.engines import BUILTIN
from weft_contracts.facts.mesh import BrakeSet, EngineProfileSet, EngineProfileWithdrawn
from weft_contracts.subjects import MESH
from weft_testing.fleet_log import FleetLog, refold

ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo"})


def test_a_mesh_that_was_told_nothing_knows_the_built_in_engines() -> None:
    assert BUILTIN == FleetLog().fleet.engines


def test_what_the_log_tells_last_of_an_engine_counts() -> None:
    log = FleetLog()
    log.add(MESH, EngineProfileSet(profile=ECHO))
    later = ECHO.model_copy(update={"formats": ("gguf",)})
    log.add(MESH, EngineProfileSet(profile=later), BrakeSet(silent=1, healthy_before=1))
    assert {**BUILTIN, "echo": later} == log.fleet.engines
    assert refold(log.commits).digest() == log.fleet.digest()
    log.add(MESH, EngineProfileWithdrawn(engine="echo"))
    assert BUILTIN == log.fleet.engines


def test_an_engine_that_weft_comes_with_by_now_is_what_weft_says_of_it() -> None:
    # given a log of a time when the engine was not built in
    log = FleetLog()
    log.add(MESH, EngineProfileSet(profile=ECHO.model_copy(update={"name": "vllm"})))
    assert BUILTIN == log.fleet.engines
    log.add(MESH, EngineProfileWithdrawn(engine="vllm"))
    assert BUILTIN == log.fleet.engines


def test_two_fleets_that_know_other_engines_are_not_equal() -> None:
    log = FleetLog()
    before = log.fleet.digest()
    log.add(MESH, EngineProfileSet(profile=ECHO))
    assert before != log.fleet.digest()
