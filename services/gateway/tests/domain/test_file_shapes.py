"""What is shown of models' files on nodes: which copy of what was sent is the one that stays."""

from weft_contracts.digest import files_digest
from weft_contracts.facts.machine import FilesCame, Reported
from weft_contracts.facts.node import Assigned, FilesRetired
from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Member, ModelSpec
from weft_contracts.formats import WORKERS_READ
from weft_contracts.subjects import machine, node
from weft_fleet.files_used import FilesNamed
from weft_gateway.domain.file_shapes import files_shape, files_users
from weft_gateway.domain.progress_board import ProgressBoard
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(
    source=UploadSource(name="m.gguf"),
    engine="llama.cpp",
    files=(SourceFile(name="m.gguf", size=5, checksum="blake3:" + "a" * 64),),
)
FILES = files_digest(SPEC)


def abouts(log: FleetLog) -> dict[str, str | None]:
    """What is said of each copy."""
    model = next(iter(log.fleet.models.values()))
    users = [(model, revision) for files, revision in files_users(log.fleet, model, FilesNamed()) if files == FILES]
    shape = files_shape(log.fleet, ProgressBoard(), FILES, users)
    assert all(each["state"] == "here" for each in shape["nodes"])
    return {each["node_name"]: each["about"] for each in shape["nodes"]}


def test_one_copy_of_what_was_sent_is_called_the_last_and_none_that_is_to_go() -> None:
    log = FleetLog()
    nodes = [log.node(name, 1 << 30, host=name) for name in ("a", "b")]
    model = log.model("mine", SPEC, replicas=2)
    for replica, on in zip(log.fleet.models[model].replicas, nodes, strict=True):
        hardware = log.fleet.nodes[on].hardware
        assert hardware is not None
        reads = dict(WORKERS_READ)
        told = Reported(hardware=hardware, backends=(), builtins=(), agent_version="1", reads=reads)
        member = Member(node=on, rank=0, devices=())
        given = Assigned(
            replica=replica,
            model=model,
            model_name="mine",
            revision=1,
            digest="d",
            epoch=1,
            members=(member,),
            spec=SPEC,
        )
        log.add(node(on), given)
        log.add(machine(on), told, FilesCame(files=FILES, bytes=5))
    last = "the last copy of what was sent, kept while mine is deployed"
    assert {"a": last, "b": None} == abouts(log)
    log.add(node(nodes[0]), FilesRetired(files=FILES, remove=True))
    assert {"a": None, "b": last} == abouts(log)
