"""`weft plan`: where a file's models would go on a file's machines, which asks no mesh; or, live, on a mesh's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client.failure import Exit, Failure
from weft_client.units import size
from weft_placement.plan import Plan, PlanFault, plan_of, planned

from weft_cli import outcome
from weft_cli.render import printable, table

if TYPE_CHECKING:
    from weft_contracts.facts.values import Weights
    from weft_placement.plan import Planned, Refused

_MOST = 16 << 20
"""Of a file, in bytes."""


def run(path: Path, policy: str | None, *, as_json: bool) -> None:
    """Print where each replica would go, and why others would go nowhere. Raises Failure: with status 2 for a file that
    says something wrong, with 1 where a replica has no place."""

    def weights_of(named: str) -> "Weights":
        return weights_at(path.parent / Path(named).expanduser())

    try:
        told = plan_of(document(path), weights_of)
        if policy is not None and policy not in told.policies:
            raise Failure(f"--policy {policy}: want one of {', '.join(told.policies)}", Exit.USAGE)
        found = planned(told, policy)
    except PlanFault as fault:
        raise Failure(f"{path}: {fault}", Exit.USAGE) from None
    show(found, as_json=as_json)


def show(found: Plan, *, as_json: bool) -> None:
    """Print a plan. Raises Failure where a replica has no place."""
    if as_json:
        outcome.show(found.document)
    else:
        _show(found)
    if found.refused:
        first, count = found.refused[0], len(found.refused)
        whole = count + len(found.placements)
        of = "the replica has" if whole == 1 else f"{count} of {whole} replicas {'has' if count == 1 else 'have'}"
        raise Failure(f"{of} no place: {first.model} {first.replica}: {first.reason}")


def document(path: Path) -> object:
    """What a YAML file says, in plain values. Raises Failure with status 2."""
    import yaml  # here: no other command needs a parser

    try:
        with path.open("rb") as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}", Exit.USAGE) from None
    if len(text) > _MOST:
        raise Failure(f"{path} has more than {_MOST} bytes, which no plan takes", Exit.USAGE)
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Failure(f"{path}: {where}it is no YAML: {error.problem or error}", Exit.USAGE) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Failure(f"{path}: it is no YAML: {' '.join(str(error).split())[:200]}", Exit.USAGE) from None


def weights_at(path: Path) -> "Weights":
    """What the headers of a GGUF file, or of a folder of safetensors, say. Raises ValueError with a sentence."""
    try:
        return _of_folder(path) if path.is_dir() else _of_gguf(path)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror or error}") from None


def _of_gguf(path: Path) -> "Weights":
    from weft_gguf.header import GgufError
    from weft_gguf.split import read_model
    from weft_gguf.weights import weights_of_header

    try:
        header, _ = read_model(path)
    except GgufError as error:
        raise ValueError(str(error)) from None
    if header.kind == "adapter":
        raise ValueError(f"{path} is an adapter and no model")
    return weights_of_header(header)


def _of_folder(folder: Path) -> "Weights":
    from weft_sources.config_weights import config_body, weights_of_config
    from weft_sources.metadata_names import CONFIG
    from weft_sources.refused import SourceRefused
    from weft_sources.safetensors_header import tensor_bytes_of

    where = folder / CONFIG
    parts = sorted(folder.glob("*.safetensors"))
    files = [file.stat().st_size for file in parts]
    if not files:
        raise ValueError(f"{folder} has no safetensors files")
    try:
        return weights_of_config(
            config_body(where.read_bytes(), str(where)), sum(files), str(where), tensor_bytes_of(parts)
        )
    except SourceRefused as refused:
        raise ValueError(str(refused)) from None


def _show(found: Plan) -> None:
    if found.placements:
        headings = ("model", "replica", "rung", "node", "rank", "claims", "score", "scores")
        table(headings, [row for each in found.placements for row in _rows(each)])
        for each in found.placements:
            for line in each.passed_over:
                print(printable(f"  {each.model} {each.replica}: passed over: {line}"))
            for ends in each.evicts:
                where = " and ".join(ends.nodes)
                print(printable(f"  {each.model} {each.replica}: {ends.model} {ends.replica} on {where} ends for it"))
    for each in found.refused:
        print()
        _show_refused(each)


def _rows(placed: "Planned") -> list[tuple[object, ...]]:
    """A row for each node."""
    layers = f" ({placed.layers} layers)" if placed.layers is not None else ""
    scores = "  ".join(f"{name} {value:.2f}" for name, value in sorted(placed.scores.items()))
    rows: list[tuple[object, ...]] = []
    for member in placed.members:
        ram = [f"memory: {size(member.ram)}"] if member.ram else []
        claims = ", ".join([*(f"gpu {index}: {size(claim)}" for index, claim in member.gpus.items()), *ram])
        rung = f"{placed.rung}{layers}"
        score = f"{placed.score:.3f}"
        rows.append((placed.model, placed.replica, rung, member.node, member.rank, claims, score, scores))
    return rows


def _show_refused(refused: "Refused") -> None:
    told = f"needs {size(refused.need)}, {size(refused.available)} there for it"
    print(printable(f"{refused.model} {refused.replica} has no place: {told}"))
    table(("rung", "why not"), _pairs(refused.rungs))
    table(("node", "why not"), _pairs(refused.nodes))


def _pairs(told: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    return list(told.items())
