"""The words that a recipe may be made of. Each is checked against a pattern, so that none is a path, an address, an
option or a command.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
_RANGE = r"(?:===?|[~<>!]=|[<>])[0-9][A-Za-z0-9.!+*_-]{0,63}"
_REQUIREMENT = re.compile(rf"({_NAME})(\[{_NAME}(?:,{_NAME}){{0,7}}\])?({_RANGE}(?:,{_RANGE}){{0,7}})?")
_DISTRIBUTION = re.compile(_NAME)
_VERSION = re.compile(r"[0-9][A-Za-z0-9.!+_-]{0,63}")
_DRIVER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,4}")
_BUILD = re.compile(r"[a-z0-9]{1,16}")
_SWITCH = re.compile(r"[A-Z][A-Z0-9_]{0,40}_BUILD_[A-Z0-9]{1,16}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_LIBRARY = re.compile(r"lib[A-Za-z0-9._+-]{1,60}\.so(\.[0-9]{1,4}){0,3}")
_DEVICE = re.compile(r"/dev/[a-z0-9_-]{1,32}(/[a-z0-9_-]{1,32}){0,2}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _requirement(text: str) -> str:
    if _REQUIREMENT.fullmatch(text) is None:
        raise ValueError(
            f"{_shown(text)} is no requirement: want a name and versions like vllm==0.32.0, without spaces, options, "
            "paths, addresses or markers"
        )
    return text


def _distribution(text: str) -> str:
    if _DISTRIBUTION.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no name of a distribution: want letters, digits, '.', '_' and '-'")
    return text


def _version(text: str) -> str:
    if _VERSION.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no version: want one like 0.32.0")
    return text


def _driver(text: str) -> str:
    if text and _DRIVER.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no driver's version: want numbers with points between, like 575.51")
    return text


def _hash(text: str) -> str:
    if _HASH.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no hash: want sha256: and 64 hexadecimal digits")
    return text


def _sentence(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > 300:
        raise ValueError(f"{_shown(text)} is no sentence: want 1 to 300 characters that can be printed")
    return text


def _build(text: str) -> str:
    if text and _BUILD.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no build: want letters and digits like rocm")
    return text


def _thing(text: str) -> str:
    if _LIBRARY.fullmatch(text) is None and _DEVICE.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} can't be looked for: want a library like libgomp.so.1, or a file in /dev")
    return text


def _switch(text: str) -> str:
    if _SWITCH.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is no switch of a build: want one like XLLAMACPP_BUILD_VULKAN")
    return text


Requirement = Annotated[str, AfterValidator(_requirement)]
Distribution = Annotated[str, AfterValidator(_distribution)]
Version = Annotated[str, AfterValidator(_version)]
DriverVersion = Annotated[str, AfterValidator(_driver)]
Build = Annotated[str, AfterValidator(_build)]
Hash = Annotated[str, AfterValidator(_hash)]
Sentence = Annotated[str, AfterValidator(_sentence)]
Thing = Annotated[str, AfterValidator(_thing)]
Switch = Annotated[str, AfterValidator(_switch)]
