"""Loads a GGUF file into llama.cpp, or says in one sentence why not."""

import re
import time
from pathlib import Path
from typing import Final, NamedTuple

from weft_dataplane import LoadFailed
from weft_gguf.header import GgufError, GgufHeader, read_part
from weft_gguf.split import read_model

from weft_engine.adapters.llamacpp_native import DevicesMissing, NativeServer
from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.captured_output import CapturedOutput
from weft_engine.launch import Launch
from weft_engine.visible_devices import NotAddressable
from weft_engine.warm_file import warm_files

LAST_WORDS_S: Final = 0.3
"""llama.cpp's log has a thread of its own: what went wrong may be written after it was raised."""
WORDS_OF_MODEL: Final = re.compile(r"error loading model: (.+)")
WORDS_OF_ERROR: Final = re.compile(r"^[\d.]+ E (.+)")
WORDS_OF_MEMORY: Final = re.compile(r"alloc|out of memory", re.IGNORECASE)


class Loaded(NamedTuple):
    """A loaded model and what it is for."""

    server: NativeServer
    embeddings: bool
    """it answers Embed and Rerank instead of Submit"""
    vocabulary: int
    """tokens that it knows"""


def load_server(launch: Launch) -> Loaded:
    """Check settings and file, then load; blocks. Raises LoadFailed."""
    settings = LlamaCppSettings.of(launch)
    header = checked_header(launch)
    check_adapters(launch, header)
    check_draft(settings)
    embeddings = settings.embeddings if settings.embeddings is not None else header.embeds
    with CapturedOutput() as captured:
        try:
            server = NativeServer(launch, settings, embeddings=embeddings, layers=header.layers)
            return Loaded(server, embeddings, header.vocabulary)
        except ImportError as error:
            raise LoadFailed(f"llama.cpp is not installed in this environment: {error}", permanent=True) from None
        except NotAddressable as error:
            raise LoadFailed(str(error), permanent=True) from None
        except DevicesMissing as error:
            raise LoadFailed(str(error), permanent=False) from None
        except Exception as error:
            sentence = str(error)
            time.sleep(LAST_WORDS_S)
    raise explained(launch, sentence, captured.lines)


def checked_header(launch: Launch) -> GgufHeader:
    """The header of a file that is worth loading, or of all files that make the model.

    Raises LoadFailed, in clearer words than llama.cpp would.
    """
    if launch.model_path is None:
        raise LoadFailed("llama.cpp needs a model_path: a GGUF file on this machine", permanent=True)
    path = Path(launch.model_path)
    try:
        header, files = read_model(path)
        warm_files(files)
        return header
    except FileNotFoundError:
        raise LoadFailed(f"the model file {path} does not exist", permanent=True) from None
    except GgufError as error:
        raise LoadFailed(str(error), permanent=True) from None
    except OSError as error:
        raise LoadFailed(f"the model file {path} can't be read: {error.strerror}", permanent=False) from None


def check_adapters(launch: Launch, header: GgufHeader) -> None:
    """Raises LoadFailed for an adapter that isn't there or is made for another model."""
    for adapter in launch.adapters:
        name = f"the LoRA adapter {adapter.name}"
        try:
            facts = read_part(Path(adapter.path)).facts
        except FileNotFoundError:
            raise LoadFailed(f"{name} is not there: {adapter.path} does not exist", permanent=True) from None
        except GgufError as error:
            raise LoadFailed(f"{name} can't be read: {error}", permanent=True) from None
        except OSError as error:
            raise LoadFailed(f"{name} can't be read: {error.strerror}", permanent=False) from None
        if facts.text("general.type") != "adapter":
            raise LoadFailed(
                f"{name} is none: {adapter.path} holds a {facts.text('general.type') or 'model'}", permanent=True
            )
        if (made_for := facts.text("general.architecture")) != header.architecture:
            raise LoadFailed(f"{name} is made for {made_for}, the model is {header.architecture}", permanent=True)


def check_draft(settings: LlamaCppSettings) -> None:
    """Raises LoadFailed for a draft model that isn't there or is none."""
    if settings.draft_model is None:
        if settings.draft_tokens is not None:
            raise LoadFailed("draft_tokens says how many a draft_model guesses, and there is none", permanent=True)
        return
    path = Path(settings.draft_model)
    try:
        _, files = read_model(path)
        warm_files(files)
    except FileNotFoundError:
        raise LoadFailed(f"the draft model {path} does not exist", permanent=True) from None
    except GgufError as error:
        raise LoadFailed(f"the draft model can't be read: {error}", permanent=True) from None
    except OSError as error:
        raise LoadFailed(f"the draft model {path} can't be read: {error.strerror}", permanent=False) from None


def explained(launch: Launch, sentence: str, lines: list[str]) -> LoadFailed:
    """The failure with the first reason that llama.cpp gave; lack of memory may pass, the rest stays."""
    said = [match[1] for line in lines if (match := WORDS_OF_MODEL.search(line))]
    said += [match[1] for line in lines if (match := WORDS_OF_ERROR.search(line))]
    reason = said[0] if said else sentence
    name = Path(launch.model_path or "").name
    lacks_memory = any(WORDS_OF_MEMORY.search(line) for line in lines)
    return LoadFailed(f"llama.cpp could not load {name}: {reason}", permanent=not lacks_memory)
