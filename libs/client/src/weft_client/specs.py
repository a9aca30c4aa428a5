"""A model's spec from what people type. It knows engines and sources, whose import who only looks needn't pay."""

from pathlib import Path
from typing import Any

from weft_contracts.engines import reading

from weft_client.remote_sources import format_of, remote_source
from weft_client.sources import BUILTINS, SIMULATED, engine_of, plain, server_source


def spec_of(source: str, engine: str | None = None, **fields: Any) -> dict[str, Any]:
    """A model's spec from what people type: a built-in model, `simulated`, `engine:NAME` for an engine that takes no
    files, the path of a GGUF file or a folder, `openai:URL#MODEL`, or what workers fetch (`remote_sources`).

    Without an engine it is the first that loads the format: of a path as it is here, of what is fetched as its name
    says (`remote_sources.format_of`). Raises Failure with status 2 for what names no source.
    """
    source = plain(source)
    if (server := server_source(source)) is not None:
        where: dict[str, str] = {"kind": SIMULATED}
        engine = engine or server.engine
        given = {"base_url": server.url, "model": server.model}
        fields = {**fields, "engine_args": given | fields.get("engine_args", {})}
    elif source in BUILTINS:
        where = {"kind": "builtin", "name": source}
        engine = engine or reading("gguf").name
    elif source == SIMULATED:
        where = {"kind": SIMULATED}
        engine = engine or reading(None).name
    elif (named := engine_of(source)) is not None:
        where = {"kind": SIMULATED}
        engine = engine or named
    elif (remote := remote_source(source)) is not None:
        where = remote.model_dump(mode="json")
        engine = engine or reading(format_of(remote)).name
    else:
        where = {"kind": "path", "path": source}
        engine = engine or reading("safetensors" if Path(source).is_dir() else "gguf").name
    return {"source": where, "engine": engine, **fields}
