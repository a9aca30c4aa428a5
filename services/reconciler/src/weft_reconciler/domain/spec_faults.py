"""What can be wrong with a spec: by itself, or beside what the nodes have. Each fault is one sentence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from weft_contracts.backends import Recipes
from weft_contracts.engines import FileFormat, Profiles
from weft_contracts.engines.given import fault_of_given
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    UploadSource,
)
from weft_contracts.facts.values import ModelSpec
from weft_contracts.secrets import MOST_IN_A_SPEC, NAMED, is_secret_name, secrets_in
from weft_contracts.source_faults import fault_of_remote, fault_of_upload, is_gguf_upload
from weft_contracts.spec_secrets import secrets_of
from weft_fleet import NodeView
from weft_placement.claim import ClaimUnknown, need_of
from weft_placement.fixed_layout import fault_of_layout
from weft_placement.installable import obtainable
from weft_requests import QUOTED, shortened

LONGEST_NAME = 255
LONGEST_PATH = 4096
MOST_REPLICAS = 1000
MOST_BYTES = 16 * 1024
"""Of a spec without its files, as JSON: it stands in every assignment, and a commit has its limit. The files have a
limit of their own (`source_faults.fault_of_files`)."""
MOST_FOUND_BYTES = 60 * 1024
"""The same with its files and with what a node says of its weights: what an assignment says beside it fits, too."""
_WRITTEN: Mapping[FileFormat, str] = {"gguf": "a GGUF file", "safetensors": "a folder with safetensors"}


def fault_of_name(name: str) -> str | None:
    """What is wrong with a model's name."""
    if not name.strip():
        return "the model has no name: give it one, for example Qwen/Qwen3-0.6B"
    if len(name) > LONGEST_NAME:
        return f"the model's name has {len(name)} characters, {LONGEST_NAME} are allowed"
    if not name.isprintable():
        return "the model's name holds characters that can't be printed: use letters, digits and signs"
    return None


def fault_of_spec(spec: ModelSpec, engines: Profiles) -> str | None:
    """What is wrong with a spec whatever the nodes have."""
    return (
        fault_of_told_size(spec)
        or _files(spec, engines)
        or _source(spec, engines)
        or _secrets(spec)
        or _given(spec, engines)
        or fault_of_layout(spec, engines[spec.engine])
        or fault_of_bounds(spec)
        or fault_of_selector(spec)
    )


def fault_of_told_size(spec: ModelSpec) -> str | None:
    """Why what an admin says in a spec is too long."""
    told = spec.model_copy(update={"weights": spec.weights.without_layers})  # what of layers was found is not told
    size = len(told.model_dump_json(exclude={"files"}).encode())
    if size > MOST_BYTES:
        return f"the spec takes {size} bytes, {MOST_BYTES} are allowed: shorten engine_args or the selector"
    return None


def fault_of_size(spec: ModelSpec) -> str | None:
    """Why a spec can't be recorded with all that was found of its files. A node may say anything of them."""
    size = len(spec.model_dump_json().encode())
    if size > MOST_FOUND_BYTES:
        return (
            f"the spec takes {size} bytes with what was found of its files, {MOST_FOUND_BYTES} are allowed:"
            " shorten engine_args or the selector, or name one of the source's files"
        )
    return None


def _files(spec: ModelSpec, engines: Profiles) -> str | None:
    if isinstance(spec.source, UploadSource):
        return fault_of_upload(spec.source, spec.files) or _sent(spec, engines)
    if spec.files:
        return "the spec lists files, and which there are is what workers find: leave them out"
    return None


def _sent(spec: ModelSpec, engines: Profiles) -> str | None:
    """What is wrong with what is said of files that are to be sent."""
    weights = spec.weights
    format: FileFormat = (
        "gguf" if isinstance(spec.source, UploadSource) and is_gguf_upload(spec.source) else "safetensors"
    )
    untold = not weights.weight_bytes or (format == "gguf" and not weights.layers)
    if weights.format != format or untold:
        read = "a GGUF file reads its header" if format == "gguf" else "a folder of safetensors reads its config.json"
        return f"the upload tells no weights: whoever sends {read} first"
    profile = engines.get(spec.engine)
    if profile is not None and profile.formats and format not in profile.formats:
        return f"the engine {spec.engine} takes {_WRITTEN[profile.formats[0]]}, and {_WRITTEN[format]} is to be sent"
    size = sum(file.size for file in spec.files)
    if weights.weight_bytes > size:
        return f"the upload has {size} bytes, and tells of {weights.weight_bytes} bytes of weights in them"
    if spec.adapters:
        return "a model that is sent takes no LoRA adapters: put its file on the workers, and give its path"
    return None


def _source(spec: ModelSpec, engines: Profiles) -> str | None:
    profile = engines.get(spec.engine)
    if profile is None:
        return f"there is no engine {spec.engine!r}: there are {', '.join(sorted(engines))}"
    simulated = isinstance(spec.source, SimulatedSource)
    if simulated and profile.formats:
        return (
            f"engine {spec.engine} needs a file, and the source is simulated: "
            "give a path or a built-in model, or choose an engine that takes no files"
        )
    if not simulated and not profile.formats:
        return f"the {spec.engine} engine takes no files: give the source simulated, or choose another engine"
    if isinstance(spec.source, PathSource):
        return _path(spec.source.path)
    if isinstance(spec.source, BuiltinSource) and not spec.source.name:
        return "the built-in model has no name: give the name of one that ships with Weft"
    if isinstance(spec.source, HfSource | HttpsSource | S3Source):
        found = fault_of_remote(spec.source)
        return found.sentence if found is not None else None
    return None


def _given(spec: ModelSpec, engines: Profiles) -> str | None:
    return fault_of_given(engines[spec.engine], spec.engine_args)


def _path(path: str) -> str | None:
    if len(path) > LONGEST_PATH or not path.isprintable():
        return f"the model's path is not one: it holds at most {LONGEST_PATH} printable characters"
    if not PurePosixPath(path).is_absolute():
        return f"the path {path!r} is relative, and every worker has its own folder: give it from the root on"
    return None


def fault_of_bounds(spec: ModelSpec) -> str | None:
    """What is wrong with how many replicas there are to be."""
    least, most = spec.min_replicas, spec.max_replicas
    if spec.spread_all and (least, most) != (1, 1):
        return f"spread_all goes with neither min_replicas ({least}) nor max_replicas ({most}): leave both out"
    if most and most < least:
        return f"max_replicas {most} is below min_replicas {least}: raise it, or set it to 0 for no upper bound"
    if max(least, most) > MOST_REPLICAS:
        return f"{max(least, most)} replicas are more than the {MOST_REPLICAS} that one model may have"
    return None


def fault_of_selector(spec: ModelSpec) -> str | None:
    """What is wrong with the labels that nodes are to bear."""
    for key, value in spec.selector.items():
        if key in ("", "!"):
            return "the selector has an empty label name: write key: value, or !key with an empty value"
        if key.startswith("!") and value:
            return f"the selector {key}: {value} can't be met: !key asks for absence and takes no value"
    return None


def _secrets(spec: ModelSpec) -> str | None:
    named = sorted(secrets_in(spec.engine_args))
    wrong = next((name for name in named if not is_secret_name(name)), None)
    if wrong is not None:
        letters = "1 to 63 of a-z, A-Z, 0-9, - and _"
        return f"engine_args say {NAMED + wrong[:64]!r}, and no secret can be called so: want {letters}"
    if len(named) > MOST_IN_A_SPEC:
        return f"engine_args name {len(named)} secrets, {MOST_IN_A_SPEC} are allowed"
    return None


def fault_of_secrets(spec: ModelSpec, known: Collection[str]) -> str | None:
    """What is wrong with the secrets that a spec names beside those that the mesh has."""
    lacking = sorted(name for name in secrets_of(spec) if name not in known)
    return f"there is no secret {lacking[0]}: set it first, by `weft secrets set {lacking[0]}`" if lacking else None


def fault_of_policy(spec: ModelSpec, known: Sequence[str]) -> str | None:
    """What is wrong with the policy that a spec names beside those that the mesh has."""
    if not spec.policy or spec.policy in known:
        return None
    return f"there is no policy {shortened(spec.policy, QUOTED)}; there is: {', '.join(known)}"


def fault_of_context(spec: ModelSpec) -> str | None:
    """What is wrong with the context beside what the file's header says."""
    most = spec.weights.context_tokens
    if most and spec.context_tokens > most:
        return f"context_tokens {spec.context_tokens} is more than the {most} that the model was made for"
    return None


def fault_of_task(spec: ModelSpec, engines: Profiles) -> str | None:
    """What is wrong with the engine beside what the file was made for."""
    if spec.weights.embeds and "embeddings" not in engines[spec.engine].serves:
        return f"the model makes embeddings, which the engine {spec.engine} can't: choose another engine"
    return None


def fault_of_claim(spec: ModelSpec, engines: Profiles) -> str | None:
    """Why the memory that a spec with its weights takes can't be computed."""
    try:
        need_of(spec, engines[spec.engine])
    except ClaimUnknown as unknown:
        return str(unknown)
    return None


def fault_of_engine(
    spec: ModelSpec, nodes: Iterable[NodeView], engines: Profiles, recipes: Recipes | None = None
) -> str | None:
    """What is wrong with the engine beside those that the mesh's nodes have, or could install."""
    known = list(nodes)
    there = sorted({backend.engine for node in known for backend in node.backends})
    if spec.engine in there:
        return None
    recipe = recipes.get(spec.engine) if recipes is not None else None
    if recipe is not None and any(obtainable(node, engines[spec.engine], recipe) for node in known):
        return None
    others = [name for name in there if name in engines and engines[name].formats]
    has = f"they have {', '.join(others)}" if others else "they have none"
    formats = engines[spec.engine].formats
    takes = " or ".join(_WRITTEN[format] for format in formats) or "no files"
    other = next(((_WRITTEN[format], name) for name in others for format in engines[name].formats), None)
    give = other[0] if other is not None else ""
    if isinstance(spec.source, HfSource) and give == _WRITTEN["gguf"]:
        give = "a repository of GGUF files, such as hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"
    instead = f"; give {give}, which {other[1]} takes" if formats and other is not None else ""
    return f"no worker has the engine {spec.engine}, which takes {takes}: {has}{instead}"


def fault_of_builtin(spec: ModelSpec, known: Iterable[str]) -> str | None:
    """What is wrong with a built-in model's name beside those that the nodes have."""
    names = sorted(set(known))
    if not isinstance(spec.source, BuiltinSource) or spec.source.name in names:
        return None
    there = f"there are {', '.join(names)}" if names else "no worker has any"
    return f"no built-in model is named {spec.source.name!r}: {there}"
