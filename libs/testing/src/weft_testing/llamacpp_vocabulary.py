"""llama.cpp's own ids of a text, by a vocabulary alone: its C functions in the library of `xllamacpp`."""

import ctypes
import importlib
from functools import cache
from pathlib import Path
from typing import Any

NULL = ctypes.c_void_p


class _ModelParams(ctypes.Structure):
    """`llama_model_params` of `llama.h`."""

    _fields_ = (
        *((name, NULL) for name in ("devices", "buffer_types")),
        *((name, ctypes.c_int32) for name in ("layers", "split_mode", "load_mode", "lazy_mode", "main_device")),
        *((name, NULL) for name in ("tensor_split", "progress", "progress_data", "overrides")),
        *((name, ctypes.c_bool) for name in ("vocab_only", "check", "extra", "no_host", "no_alloc", "mtp")),
    )


class LlamaCppVocabulary:
    """A file's vocabulary as llama.cpp loaded it, held until the process ends."""

    def __init__(self, path: Path) -> None:
        params = _library().llama_model_default_params()
        params.vocab_only = True
        model = _library().llama_model_load_from_file(str(path).encode(), params)
        assert model, f"llama.cpp does not load {path.name}"
        self._vocabulary = _library().llama_model_get_vocab(model)

    def ids(self, text: str, *, ends: bool = False, special: bool = True) -> list[int]:
        """The ids that the engine computes with."""
        octets = text.encode()
        room = len(octets) + 16
        found = (ctypes.c_int32 * room)()
        count = _library().llama_tokenize(self._vocabulary, octets, len(octets), found, room, ends, special)
        assert count >= 0, f"{-count} ids in a room for {room}"
        return list(found[:count])


@cache
def _library() -> Any:
    (path,) = Path(str(importlib.import_module("xllamacpp").__file__)).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(path))
    library.llama_model_default_params.restype = _ModelParams
    library.llama_model_load_from_file.restype = NULL
    library.llama_model_load_from_file.argtypes = (ctypes.c_char_p, _ModelParams)
    library.llama_model_get_vocab.restype = NULL
    library.llama_model_get_vocab.argtypes = (NULL,)
    numbers, flag = ctypes.c_int32, ctypes.c_bool
    library.llama_tokenize.argtypes = (NULL, ctypes.c_char_p, numbers, NULL, numbers, flag, flag)
    # a default of the library that is surely not what it was if the structure above is
    assert library.llama_model_default_params().layers == -1
    return library
