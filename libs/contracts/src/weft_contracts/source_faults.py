"""What is wrong with a source that workers fetch from elsewhere, whatever the workers can reach. Pure.

Each fault is what follows the field's name, in one sentence; None where nothing is wrong. Which hosts a worker asks at
all, `http` and private addresses among them, is its operator's setting.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from weft_contracts.engines.server_url import fault_of_host, fault_of_url
from weft_contracts.facts.source import (
    MOST_FILES,
    MOST_URL,
    PLAIN_NAME,
    REPOSITORY,
    RemoteSource,
    SourceFiles,
    UploadSource,
)
from weft_contracts.secrets import is_secret_name

MOST_FILES_BYTES: Final = 40 * 1024
"""Of a model's list of files, as JSON: with the rest of a spec, a receipt and what else an assignment says it stays
below the 64 KiB of a commit."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9._+@=-]*"
_FILE: Final = re.compile(rf"{_PART}(/{_PART}){{0,7}}")
_REVISION: Final = re.compile(r"(?!.*(\.\.|//|@\{))[A-Za-z0-9_][A-Za-z0-9._/+@=#-]*")
_SECRETS: Final = frozenset(
    (
        *("access_token", "api_key", "apikey", "auth", "authorization", "password", "secret", "sig", "signature"),
        *("token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-signature"),
    )
)
"""Parameters of a query that let whoever reads them in."""
LONGEST: Final = 255
_END_OF_A_PART: Final = "00001-of-00002.gguf"
_OF_A_FOLDER: Final = (".safetensors", ".json", ".jinja", ".model", ".tiktoken", ".txt")
"""Ends of the names that are sent of a folder: weights, and what is read as data. Nothing that runs is among them."""


class SourceFault(NamedTuple):
    """What is wrong, and in which field of the source."""

    field: str
    fault: str

    @property
    def sentence(self) -> str:
        """For people who see no field's name beside it."""
        return f"the source's {self.field} {self.fault}"


def fault_of_repository(text: str) -> str | None:
    """What is wrong with a hub's repository."""
    if re.fullmatch(REPOSITORY, text) and ".." not in text and not text.endswith(".git"):
        return None
    return f"is {text[:LONGEST]!r}, which no repository is called: want OWNER/NAME, such as Qwen/Qwen3-0.6B"


def fault_of_revision(text: str) -> str | None:
    """What is wrong with a repository's revision; empty is the main one."""
    if not text or (len(text) <= LONGEST and _REVISION.fullmatch(text)):
        return None
    return f"is {text[:LONGEST]!r}, which no revision is called: want a branch, a tag or a commit"


def fault_of_file(text: str) -> str | None:
    """What is wrong with what names a file of a repository; empty names none."""
    if not text or (len(text) <= LONGEST and _FILE.fullmatch(text)):
        return None
    return f"is {text[:LONGEST]!r}: want a GGUF file's name in the repository, or its quantisation, such as Q4_K_M"


def fault_of_file_url(url: str) -> str | None:
    """What is wrong with the address of a file."""
    if len(url) > MOST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"want a URL of at most {MOST_URL} printable ASCII characters without spaces"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.scheme not in ("https", "http") or not host:
        return "want https://HOST/PATH of a file"
    if parts.username is not None or parts.password is not None:
        return "holds a user or a password, which would stand in the log: want it without"
    if "#" in url:
        return "holds a fragment: want what stands before the #"
    if port == 0:
        return "names port 0: want 1 to 65535"
    named = next((name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if name.lower() in _SECRETS), None)
    if named is not None:
        return f"holds {named} in its query, which would stand in the log: want an address that needs no secret"
    if parts.path in ("", "/") and not parts.query:
        return "names no file: want https://HOST/PATH"
    return fault_of_host(host)


def fault_of_bucket(text: str) -> str | None:
    """What is wrong with a bucket's name."""
    if _BUCKET.fullmatch(text):
        return None
    return f"is {text[:LONGEST]!r}: want 3 to 63 of a-z, 0-9, . and -, with a letter or digit at both ends"


def fault_of_key(text: str) -> str | None:
    """What is wrong with an object's key, or a folder's prefix."""
    if len(text) > 1024 or not text.isprintable():
        return "want at most 1024 printable characters"
    if text.startswith("/") or any(part in (".", "..") for part in text.split("/")):
        return f"is {text[:LONGEST]!r}: want a key without a leading / and without . and .. in it"
    return None


def fault_of_region(text: str) -> str | None:
    """What is wrong with a region's name."""
    return None if _REGION.fullmatch(text) else f"is {text[:LONGEST]!r}: want a name such as eu-central-1"


def fault_of_endpoint(text: str) -> str | None:
    """What is wrong with the URL of a server of buckets; empty is Amazon's."""
    if not text:
        return None
    fault = fault_of_url(text)
    if fault is not None and "user or a password" in fault:
        return "holds a user or a password, which would stand in the log: want it without"
    return "want https://HOST[:PORT]" if fault is not None and fault.startswith("want http") else fault


def fault_of_secret(name: str, place: str = "") -> str | None:
    """What is wrong with the secret that a source names; empty names none. `place`: the URL that its value goes to."""
    if name and not is_secret_name(name):
        return f"is {name[:LONGEST]!r}, and no secret can be called so: want 1 to 63 of a-z, A-Z, 0-9, - and _"
    if name and urlsplit(place).scheme == "http":
        return "goes over https alone, and the address is plain http: want https, or no secret"
    return None


def fault_of_remote(source: RemoteSource) -> SourceFault | None:
    """The first thing that is wrong with a source."""
    match source.kind:
        case "hf":
            faults = (
                ("repository", fault_of_repository(source.repository)),
                ("revision", fault_of_revision(source.revision)),
                ("file", fault_of_file(source.file)),
                ("secret", fault_of_secret(source.secret)),
            )
        case "https":
            faults = (
                ("url", fault_of_file_url(source.url)),
                ("secret", fault_of_secret(source.secret, source.url)),
            )
        case "s3":
            faults = (
                ("bucket", fault_of_bucket(source.bucket)),
                ("key", fault_of_key(source.key)),
                ("region", fault_of_region(source.region)),
                ("endpoint", fault_of_endpoint(source.endpoint)),
                ("secret", fault_of_secret(source.secret)),
            )
    return next((SourceFault(field, fault) for field, fault in faults if fault is not None), None)


def fault_of_files(files: SourceFiles) -> str | None:
    """Why a list of files is too long for a spec."""
    size = 0
    for count, file in enumerate(files, 1):
        size += len(file.model_dump_json()) + 1
        if size > MOST_FILES_BYTES:
            fit = f"the names and checksums of the first {count - 1} fill the {MOST_FILES_BYTES // 1024} KiB allowed"
            return f"the model has {len(files)} files, {len(files) - count + 1} too many: {fit}; name one of its files"
    if len(files) > MOST_FILES:
        return f"the model has {len(files)} files, {len(files) - MOST_FILES} more than the {MOST_FILES} allowed"
    return None


def fault_of_upload(source: UploadSource, files: SourceFiles) -> str | None:
    """What is wrong with the files that whoever sends them tells of: each has a name, a size and a hash first."""
    if not files:
        return "the upload tells no files: each with its name, its size and its blake3 comes first"
    if files[0].name != source.name:
        return f"the upload is named {source.name!r}, and its first file {files[0].name!r}: want the same name"
    if len({file.name for file in files}) < len(files):
        return "the upload tells one file twice"
    for file in files:
        if not re.fullmatch(PLAIN_NAME, file.name):
            return f"the upload's file {file.name!r} is none: want a name without a folder"
        if not file.checksum.startswith("blake3:"):
            return f"the upload's file {file.name!r} has no blake3: want blake3: and 64 hexadecimal digits"
        if file.size < 1:
            return f"the upload's file {file.name!r} is empty"
    of_one_model = _fault_of_parts if is_gguf_upload(source) else _fault_of_folder
    return of_one_model(source, files) or fault_of_files(files)


def is_gguf_upload(source: UploadSource) -> bool:
    """Whether a GGUF file is sent; else it is a folder of safetensors."""
    return source.name.lower().endswith(".gguf")


def _fault_of_parts(source: UploadSource, files: SourceFiles) -> str | None:
    stem = source.name[: -len(_END_OF_A_PART)]
    parts = [f"{stem}{at:05}-of-{len(files):05}.gguf" for at in range(1, len(files) + 1)]
    if len(files) > 1 and [file.name for file in files] != parts:
        return "the upload has several files, and they are not the parts of one split GGUF file, from the first on"
    return None


def _fault_of_folder(source: UploadSource, files: SourceFiles) -> str | None:
    if not source.name.endswith(".safetensors"):
        return f"the upload's first file is {source.name!r}: want a GGUF file's name or a safetensors file's"
    strange = next((file.name for file in files if not file.name.endswith(_OF_A_FOLDER)), None)
    if strange is not None:
        return f"the upload's file {strange!r} is none of a folder of safetensors: want {', '.join(_OF_A_FOLDER)}"
    if "config.json" not in {file.name for file in files}:
        return "the upload has safetensors files and no config.json, which engines read them by"
    return None
