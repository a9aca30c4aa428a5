"""Where a model's files are, and which files they are. Sizes are bytes."""

from typing import Annotated, Final, Literal

from pydantic import Field

from weft_contracts.facts.fact import Count, Value
from weft_contracts.secrets import SECRET_NAME

MOST_FILES: Final = 512
"""Of one model. Their list stands in the spec, and so in every assignment."""
MOST_URL: Final = 2048
REPOSITORY: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9._-]{1,96})?$"
CHECKSUM: Final = r"^(sha256:[0-9a-f]{64}|blake3:[0-9a-f]{64}|git:[0-9a-f]{40}|etag:[!-~]{1,256})?$"
FILE_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9._+@=-]*(/[A-Za-z0-9_][A-Za-z0-9._+@=-]*){0,7}$"
PLAIN_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9._+@=-]*$"
"""Of a file that lies in no folder."""


class SourceFile(Value, frozen=True):
    """One file of a source, as the source itself tells it."""

    name: Annotated[str, Field(max_length=255, pattern=FILE_NAME)]
    """Its place under the model's folder, with `/` between the parts; no part begins with a dot."""
    size: Count
    checksum: Annotated[str, Field(pattern=CHECKSUM)] = ""
    """`sha256:…` of its content, `git:…` (its blob id in a repository), `blake3:…`, or `etag:…`, which tells no content
    but another version of it; empty: the source says none."""


FilesDigest = Annotated[str, Field(max_length=64)]
"""See `digest.files_digest`."""
SourceFiles = Annotated[tuple[SourceFile, ...], Field(max_length=MOST_FILES)]


SourceSecret = Annotated[str, Field(pattern=f"^({SECRET_NAME})?$", exclude_if=lambda name: not name)]
"""The name of the secret that lets its readers in; empty: what the worker's own settings say."""


class BuiltinSource(Value, frozen=True):
    """A model that ships with the project and so is on every worker."""

    kind: Literal["builtin"] = "builtin"
    name: str


class PathSource(Value, frozen=True):
    """A file or folder that workers have on their own disks."""

    kind: Literal["path"] = "path"
    path: str


class SimulatedSource(Value, frozen=True):
    """No files: for an engine that takes none."""

    kind: Literal["simulated"] = "simulated"


class HfSource(Value, frozen=True):
    """A repository of a hub that speaks Hugging Face's protocol; which hub is the workers' setting."""

    kind: Literal["hf"] = "hf"
    repository: Annotated[str, Field(pattern=REPOSITORY)]
    """`owner/name`, or a name alone."""
    revision: Annotated[str, Field(max_length=255)] = ""
    """A branch, tag or commit; empty: the main one. An accepted spec names the commit, 40 hexadecimal digits."""
    file: Annotated[str, Field(max_length=255)] = ""
    """Of several models in one repository the one meant: a GGUF file's name, or its quantisation, such as `Q4_K_M`."""
    secret: SourceSecret = ""
    """Its value is a token of the hub."""


class HttpsSource(Value, frozen=True):
    """A file at an address of the web."""

    kind: Literal["https"] = "https"
    url: Annotated[str, Field(max_length=MOST_URL)]
    secret: SourceSecret = ""
    """Its value is a bearer token."""


class S3Source(Value, frozen=True):
    """An object of a bucket, or all objects under a prefix."""

    kind: Literal["s3"] = "s3"
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    key: Annotated[str, Field(max_length=1024)]
    """Of a GGUF file; or a folder's prefix, which ends with `/` or is empty."""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")] = "us-east-1"
    endpoint: Annotated[str, Field(max_length=MOST_URL)] = ""
    """The server's URL; empty: Amazon's of that region."""
    secret: SourceSecret = ""
    """Its value is `<access key>:<secret key>`, or with `:<session token>` behind."""


class UploadSource(Value, frozen=True):
    """Files that somebody sends to the mesh: the spec's `files` tell their sizes and blake3, and come first."""

    kind: Literal["upload"] = "upload"
    name: Annotated[str, Field(max_length=255, pattern=PLAIN_NAME)]
    """Of the file that an engine is told first: a GGUF file, the only one in most; or the first weights of a folder of
    safetensors."""


RemoteSource = HfSource | HttpsSource | S3Source
"""Sources whose files workers fetch from outside of the mesh."""
FetchedSource = RemoteSource | UploadSource
"""Sources whose files come to a worker's store over the network: from their origin, or from another node."""
Source = Annotated[
    BuiltinSource | PathSource | SimulatedSource | HfSource | HttpsSource | S3Source | UploadSource,
    Field(discriminator="kind"),
]
