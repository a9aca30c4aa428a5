"""Which of a source's files an engine takes. Pure: what is there in, what is chosen out."""

from collections.abc import Callable, Sequence

from weft_contracts.engines import FileFormat
from weft_contracts.facts.source import MOST_FILES, SourceFile
from weft_contracts.shown import shown

from weft_sources.found import FoundFile, usable
from weft_sources.gguf_choice import choose_gguf, gguf_models, is_gguf
from weft_sources.metadata_names import CONFIG, INDEX, is_metadata
from weft_sources.refused import SourceRefused
from weft_sources.safetensors_choice import (
    choose_safetensors,
    has_safetensors,
    index_file,
    index_names,
    refuse_pickles,
)


def choose(
    there: Sequence[FoundFile],
    formats: Sequence[FileFormat],
    wanted: str,
    where: str,
    index: Callable[[SourceFile], bytes],
) -> tuple[SourceFile, ...]:
    """What an engine of these formats takes: its weights, the file that it is told first, and then the metadata.

    `wanted`: which GGUF model is meant, by name or quantisation. `index` reads the index of safetensors files,
    where there is one. `where` names the source to people. Raises SourceRefused.
    """
    if not formats:
        raise SourceRefused(f"{where} has files, and this engine takes none")
    files = usable(file for file in there if _matters(file.name))
    format = _format(files, formats, wanted)
    if format is None:
        refuse_pickles([file.name for file in there], where)
        want = " or ".join("a GGUF model" if each == "gguf" else "safetensors files" for each in formats)
        raise SourceRefused(f"{where} holds nothing that this engine loads: it takes {want}")
    if format == "gguf":
        weights = choose_gguf(files, wanted, where)
    elif wanted:
        raise SourceRefused(f"{where}: {shown(wanted)} chooses a GGUF model, and this engine loads safetensors files")
    else:
        said = index_file(files)
        weights = choose_safetensors(files, None if said is None else index_names(index(said), where), where)
    chosen = (*weights, *_metadata(files, format))
    if len(chosen) > MOST_FILES:
        raise SourceRefused(f"{where}: the model is {len(chosen)} files, and at most {MOST_FILES} are taken")
    return chosen


def _matters(name: str) -> bool:
    return is_gguf(name) or name.endswith(".safetensors") or name == INDEX or is_metadata(name)


def _format(files: Sequence[SourceFile], formats: Sequence[FileFormat], wanted: str) -> FileFormat | None:
    """The first of an engine's formats that is there; a wish for one model of several is one for GGUF."""
    there: dict[FileFormat, bool] = {"gguf": bool(gguf_models(files)), "safetensors": has_safetensors(files)}
    if wanted and "gguf" in formats and there["gguf"]:
        return "gguf"
    return next((each for each in formats if there[each]), None)


def _metadata(files: Sequence[SourceFile], format: FileFormat) -> list[SourceFile]:
    """The small files, the configuration first; the index goes with the weights that it describes."""
    small = [file for file in files if is_metadata(file.name) or (format == "safetensors" and file.name == INDEX)]
    return sorted(small, key=lambda file: (file.name != CONFIG, file.name))
