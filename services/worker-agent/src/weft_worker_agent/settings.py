"""The agent's settings: environment variables `WEFT_…`, with defaults and ranges.

The supervisor reads four of them by itself (`outbound/supervisor/options.py`): it must stay small.
"""

import re
import socket
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from weft_contracts.budget import parse_budget
from weft_contracts.certificates import split_token
from weft_files.reach import Reach
from weft_runtime.settings import HTTP_URL
from weft_sources.content_bucket import ContentBucket, bucket_of, server_of
from weft_sources.environment import as_hosts, source_settings
from weft_sources.settings import SourceSettings

from weft_worker_agent.domain.device_choice import parse_choice
from weft_worker_agent.domain.device_report import Use
from weft_worker_agent.domain.loading import LoadBounds
from weft_worker_agent.domain.simulated_gpus import parse_simulated
from weft_worker_agent.domain.stall import StallBounds
from weft_worker_agent.outbound.backends.sources import PackageSources
from weft_worker_agent.outbound.supervisor.options import (
    DEFAULT_DRAIN_S,
    DEFAULT_STATE,
    DEFAULT_STOP_S,
    MAX_DRAIN_S,
    MAX_STOP_S,
)

_SHARE = re.compile(r"1/([1-9][0-9]?)")
_THREADS = re.compile(r"^(share|[1-9][0-9]{0,2})$")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")


def _host_name() -> str:
    return socket.gethostname().partition(".")[0][:63] or "node"


def _said(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""


class WorkerSettings(BaseSettings):
    """Where the mesh is, what this node calls itself, what it may use of its machine."""

    model_config = SettingsConfigDict(env_prefix="WEFT_", extra="ignore")

    gateway_url: str = "http://127.0.0.1:8080"
    """Where the node joins and renews its credential."""
    join_token: SecretStr | None = None
    """Registration token; needed until the node has joined, and when its addresses change."""
    node_name: Annotated[str, Field(min_length=1, max_length=63)] = Field(default_factory=_host_name)
    """How people call this node; unique in the mesh. Default: the host's name."""
    labels: Annotated[dict[str, str], NoDecode] = {}
    """What selectors ask for: `zone=a,disk=fast`, or a JSON object."""
    max_replicas_per_model: Annotated[int, Field(ge=0, le=10_000)] | None = None
    """How many replicas of one model this node takes at most; 0 or none: no cap. An admin's cap goes over it."""
    state: Path = Path(DEFAULT_STATE)
    """Folder of the key, the credential, the socket, launch files and logs. One worker each."""
    models: Path | None = None
    """Folder of model files; its disk's free space is reported. Default: where fetched files lie."""
    backends: Path | None = None
    """Folder of engines' own environments, `<engine>/bin/python` in it; the others run in the agent's environment."""
    install: Literal["all", "none"] = "all"
    """Whether engines that replicas need and that are not here are installed."""
    install_folder: Path | None = None
    """Folder of the environments that are made for them. Default: `backends` in the state folder."""
    install_index: SecretStr | None = None
    """Where packages come from. Default: what `UV_DEFAULT_INDEX` or `PIP_INDEX_URL` says, else the public index."""
    install_find_links: SecretStr | None = None
    """Folders or pages of packages beside it. Default: what `UV_FIND_LINKS` or `PIP_FIND_LINKS` says."""
    install_offline: Path | None = None
    """A folder with all packages that are needed: no index is asked."""
    install_silence: Annotated[float, Field(gt=0, le=86400)] = 900.0
    """Seconds after which an install in which nothing moves is given up."""
    install_overdue: Annotated[float, Field(gt=0, le=86400)] = 900.0
    """Seconds after which an install that has not ended is said to be overdue; it goes on."""
    install_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Engines that are installed at the same time; others wait."""
    install_jobs: Annotated[int, Field(ge=0, le=1024)] = 0
    """Compilers that run at once where an engine is built; 0: one for each processor of this worker's share."""
    install_keep: Annotated[float, Field(ge=0, le=366 * 86400)] = 86400.0
    """Seconds that an installed engine stays which no recipe names any more and nothing uses."""
    files_folder: Path | None = None
    """Where models' files lie that were fetched. Default: `files` in the state folder."""
    files_most_bytes: Annotated[int, Field(ge=1)] | None = None
    """Bytes of such files above which those go that nothing needs, the least used first; none: they stay."""
    files_at_once: Annotated[int, Field(ge=1, le=16)] = 2
    """Models that are fetched at the same time; others wait."""
    files_readers: Annotated[int, Field(ge=1, le=256)] = 8
    """Requests of other nodes for such files that are answered at once; others are told to come again."""
    files_store: str = ""
    """A bucket that the mesh keeps its models' files in, `s3://bucket/prefix?endpoint=…&region=…`, for all of its nodes
    the same. Its keys are those of `s3_access_key`. None: it has none."""
    metadata_self_host: bool = True
    """Whether this node offers its models' small files itself. Else they are to be had at the models' sources alone."""
    metadata_most_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = 1 << 30
    """The largest of those files that is published."""
    hub: Annotated[str, Field(pattern=HTTP_URL)] | None = None
    """The hub that repositories are fetched from. Default: what `HF_ENDPOINT` says, else the public one."""
    hub_token: SecretStr | None = None
    """What the hub knows this node by. Default: what `HF_TOKEN` says."""
    hub_offline: bool | None = None
    """Whether no hub is asked: what is not in its folder is not there. Default: what `HF_HUB_OFFLINE` says."""
    hub_folder: Path | None = None
    """A cache folder of huggingface_hub, which is read. Default: as `HF_HUB_CACHE` or `HF_HOME` says, or its own."""
    s3_access_key: SecretStr | None = None
    """Of buckets. Default: what `AWS_ACCESS_KEY_ID` says; empty: they are asked without a name."""
    s3_secret_key: SecretStr | None = None
    """Default: what `AWS_SECRET_ACCESS_KEY` says."""
    s3_session_token: SecretStr | None = None
    """Default: what `AWS_SESSION_TOKEN` says."""
    sources_allow: str = ""
    """Servers that may be asked for models though their address is private or they speak plain http: `host` or
    `host:port`, with commas between. The hub's own counts as named."""
    share: Annotated[str, Field(pattern=_SHARE.pattern)] = "1/1"
    """What part of the machine's processors and memory this worker may use: `1/N`, N from 1 to 99."""
    devices: str = "all"
    """Which accelerators it uses: `all`, `none`, or `0,nvidia:1,amd,GPU-…`; an entry with `!` is left out."""
    vram_budget: str = ""
    """How much of each accelerator's memory replicas may claim: `80%`, `0.8`, `12GB`, `12GiB`. Default: all."""
    simulate_gpus: str = ""
    """Accelerators made up for development, which only the simulated engine takes: `2x80GB:nvidia`."""
    advertise_host: str = "127.0.0.1"
    """The name or address under which gateways reach this node's engines and files."""
    http_host: str = "127.0.0.1"
    """Where the file server listens, and engines too."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """The file server's port; 0: any free one, kept over restarts."""
    grpc_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """The first port of engines: each takes the next free one; 0: any free ones."""
    engine_python: str = sys.executable
    """The interpreter that runs engine hosts."""
    engine_threads: Annotated[str, Field(pattern=_THREADS.pattern)] = "1"
    """Threads with which an engine computes on the processor; `share`: one for each processor of this worker's."""
    numa: Literal["bind", "off"] = "bind"
    """`bind`: an engine that one NUMA node has room for is kept to it; `off`: none is."""
    load_deadline: Annotated[float, Field(gt=0, le=86400)] = 300.0
    """Seconds that an engine may take until it is ready, whatever its model; more while it gets on."""
    load_deadline_per_gib: Annotated[float, Field(ge=0, le=3600)] = 20.0
    """Seconds more for each GiB of weights."""
    load_longest: Annotated[float, Field(gt=0, le=7 * 86400)] = 7200.0
    """Seconds after which a load is given up even if it gets on."""
    stall_timeout: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """Seconds that an engine may have work and make no step, or its host say nothing, while nothing computes there."""
    stall_longest: Annotated[float, Field(ge=1, le=86400)] = 600.0
    """The same while its processes compute: a long prompt is one step."""
    canary_after: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """Seconds without a step after which an idle engine is asked for a token; 0: never."""
    secrets_every: Annotated[float, Field(ge=0.1, le=86400)] = 60.0
    """Seconds between two looks whether a secret that something here names has another value."""
    stop_timeout: Annotated[float, Field(gt=0, le=MAX_STOP_S)] = DEFAULT_STOP_S
    """Seconds that running requests have when the worker stops."""
    drain_timeout: Annotated[float, Field(ge=0, le=MAX_DRAIN_S)] = DEFAULT_DRAIN_S
    """Seconds in which what runs here is replaced elsewhere and finished before the worker stops; 0: it isn't."""
    keeper_socket: Path | None = None
    """Set by the supervisor, for its agent; the name is older than the word."""
    lifeline_fd: int | None = None
    """Set by the supervisor: a pipe that closes when it ends."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "console"] = "auto"
    """auto: console on a terminal, JSON lines elsewhere."""
    otlp_endpoint: Annotated[str | None, Field(pattern=HTTP_URL)] = None
    """Where traces go by OTLP over HTTP, the engines' too; none: nowhere."""

    @property
    def token(self) -> tuple[str | None, str | None]:
        """The registration token's secret, and the digest of the mesh's authority; None for what there is not."""
        return split_token(self.join_token.get_secret_value()) if self.join_token is not None else (None, None)

    @property
    def parts(self) -> int:
        """Into how many parts the machine is divided."""
        return int(self.share.partition("/")[2])

    def threads(self, processors: float) -> int:
        """With how many threads an engine computes, on so many processors of this worker's."""
        return max(int(processors), 1) if self.engine_threads == "share" else int(self.engine_threads)

    @property
    def use(self) -> Use:
        """What it may use of the accelerators."""
        return Use(
            parse_choice(self.devices),
            parse_budget(self.vram_budget) if self.vram_budget.strip() else None,
            self.parts,
            parse_simulated(self.simulate_gpus),
        )

    @property
    def backends_folder(self) -> Path:
        """Where engines are installed."""
        return self.install_folder or self.state / "backends"

    @property
    def package_sources(self) -> PackageSources:
        """Where packages for engines come from."""
        index, links = self.install_index, self.install_find_links
        return PackageSources(
            index.get_secret_value() if index is not None else "",
            links.get_secret_value() if links is not None else "",
            self.install_offline,
        )

    @property
    def store_folder(self) -> Path:
        """Where fetched files lie."""
        return self.files_folder or self.state / "files"

    @property
    def model_sources(self) -> SourceSettings:
        """How models' sources are asked."""
        return source_settings(
            hub=self.hub or "",
            hub_token=_said(self.hub_token),
            offline=self.hub_offline,
            hub_folder=self.hub_folder,
            s3_access_key=_said(self.s3_access_key),
            s3_secret_key=_said(self.s3_secret_key),
            s3_session_token=_said(self.s3_session_token),
            allow=(*as_hosts(self.sources_allow), *self._store_server),
        )

    @property
    def mesh_store(self) -> ContentBucket | None:
        """The bucket that the mesh keeps its files in."""
        return ContentBucket(bucket_of(self.files_store), self.model_sources) if self.files_store else None

    @property
    def _store_server(self) -> tuple[str, ...]:
        """Who names a store may mean one of the own network."""
        server = server_of(bucket_of(self.files_store)) if self.files_store else ""
        return (server,) if server else ()

    @property
    def load_bounds(self) -> LoadBounds:
        """How long an engine may load."""
        return LoadBounds(self.load_deadline, self.load_deadline_per_gib, self.load_longest)

    @property
    def stall_bounds(self) -> StallBounds:
        """When an engine counts as stalled."""
        return StallBounds(self.stall_timeout, max(self.stall_timeout, self.stall_longest))

    @field_validator("devices")
    @classmethod
    def _devices(cls, value: str) -> str:
        parse_choice(value)
        return value

    @field_validator("vram_budget")
    @classmethod
    def _budget(cls, value: str) -> str:
        parse_budget(value)
        return value

    @field_validator("simulate_gpus")
    @classmethod
    def _simulated(cls, value: str) -> str:
        parse_simulated(value)
        return value

    @field_validator("sources_allow")
    @classmethod
    def _hosts(cls, value: str) -> str:
        Reach(as_hosts(value))
        return value

    @field_validator("files_store")
    @classmethod
    def _bucket(cls, value: str) -> str:
        if value.strip():
            bucket_of(value.strip())
        return value.strip()

    @field_validator("join_token")
    @classmethod
    def _whole(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            split_token(value.get_secret_value())
        return value

    @field_validator("labels", mode="before")
    @classmethod
    def _labels(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("{"):
            import json

            return json.loads(value)
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if bad := [name for name, equals, _ in pairs if not equals]:
            raise ValueError(f"{bad[0]!r} is no label: want name=value, separated by commas")
        return {name.strip(): text.strip() for name, _, text in pairs}

    @field_validator("labels")
    @classmethod
    def _label_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _LABEL.fullmatch(name) or len(text) > 63:
                raise ValueError(
                    f"label {name}={text!r}: names are 1 to 63 letters, digits, '.', '_', '/' and '-', "
                    "values at most 63 characters"
                )
        return value

    @field_validator("state", "models", "backends", "install_folder", "install_offline", "files_folder", "hub_folder")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value.expanduser().absolute() if value is not None else None
