"""The gateway's settings, from `WEFT_…`."""

import os
import secrets
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from weft_contracts.api_key import parse_first_key
from weft_runtime.settings import HTTP_URL, BadSetting, ServiceSettings

from weft_gateway.domain.access import Policy, is_loopback
from weft_gateway.domain.card_files import CardSettings
from weft_gateway.domain.client_address import networks
from weft_gateway.domain.cors import ANY, Cors, origins

MIN_KEY_BYTES = 32
"""Of the file that keys digests."""


class GatewaySettings(ServiceSettings):
    """What this service takes beyond the shared settings."""

    http_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Of the HTTP server: API, health, metrics. 0: any free port."""
    http_certificate: Path | None = None
    http_key: Path | None = None
    """What people's browsers and clients are shown instead of the mesh's own certificate; both or none."""
    postgres_url: str | None = None
    """Where the tables for people are (libpq's form); none: lists answer 503."""
    postgres_url_file: Path | None = None
    """A file that holds it instead, as containers are given secrets."""
    require_keys: bool = False
    """Everybody needs a key, this machine too. So it is anyway where the gateway listens elsewhere than on loopback."""
    allow_anonymous: bool = False
    """Nobody needs a key: whoever can reach the port may do everything."""
    first_key: str | None = None
    """Of the first admin key, what `weft keys first` prints: its prefix and hash. It is recorded once."""
    waiting_nodes: Annotated[int, Field(ge=1, le=100_000)] = 2000
    """Nodes that wait for approval at once, and registrations within a minute, in all. The registry's is the same."""
    waiting_nodes_per_token: Annotated[int, Field(ge=1, le=100_000)] = 64
    """The same for each token that doesn't say another number."""
    loading_wait_s: Annotated[float, Field(ge=0, le=600)] = 60.0
    """How long a request waits for a model that loads."""
    loading_line: Annotated[int, Field(ge=0, le=100_000)] = 1024
    """Requests that wait for one model that loads at once."""
    busy_wait_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a request waits while every replica is busy."""
    busy_queue: Annotated[int, Field(ge=0, le=100_000)] = 256
    """Requests that wait for one model's busy replicas at once."""
    resume_wait_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a broken stream waits for another replica to go on with it."""
    stall_s: Annotated[float, Field(ge=10, le=86_400)] = 300.0
    """A running request without an output for so long is given up."""
    outcome_wait_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    """How long an admin's POST waits for its outcome before it answers 504."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 8 << 20
    """Larger request bodies on `/v1` are refused with 413."""
    max_admin_body_bytes: Annotated[int, Field(ge=1024, le=8 << 20)] = 256 << 10
    """The same of the routes for admins. Those of nodes take 64 KiB."""
    cors_origins: str = ""
    """Pages of these origins may call `/v1`: `https://app.example`, several with commas, `*` where keys are needed."""
    cors_everywhere: bool = False
    """They may call everything else too, but the nodes' routes."""
    trusted_proxies: str = ""
    """Networks (CIDRs, with commas) of proxies whose `X-Forwarded-For` is believed: for limits alone."""
    slow_client_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 1 << 20
    """A client that leaves more than this unread of a stream is dropped."""
    finish_wait_s: Annotated[float, Field(ge=0, le=600)] = 7.0
    """How long running requests may take to finish when the gateway stops."""
    show_replicas: bool = False
    """Every answer names its replica and node, and everybody may choose a replica. Else who may read the status."""
    log_attribution: bool = False
    """What clients say of a request for their own books (`metadata`, `user`, …) stands in its log line and span."""
    attribution_key: Path | None = None
    """File whose bytes key the digests of `user` and `safety_identifier`; none: drawn anew at each start."""
    prompts: Literal["engine", "gateway"] = "gateway"
    """Who makes prompts of chats: engines, or this gateway wherever its ids were shown to be the engine's."""
    state: Path | None = None
    """A folder of this service's own."""
    metadata_folder: Path | None = None
    """Where models' small files are kept that prompts are made with; the gateways of a host may share it. Default:
    `metadata` in the state folder; where there is none, `weft/metadata` in the user's cache folder."""
    metadata_keep_bytes: Annotated[int, Field(ge=1 << 20)] = 4 << 30
    """Of all of them; the least used go first."""
    metadata_most_bytes: Annotated[int, Field(gt=0, le=1 << 30)] = 1 << 30
    """Of one of them."""
    hub: Annotated[str, Field(pattern=HTTP_URL)] | None = None
    """Where those of hub models are asked for that nothing in the mesh gives. Default: what `HF_ENDPOINT` says, else
    the public hub."""
    sources_allow: str = ""
    """Servers that may be asked though their address is private or they speak plain http: `host` or `host:port`, with
    commas between. The hub's own counts as named."""
    metrics_models: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Models with figures of their own at `/metrics`, the first that are asked; others' are `_other`'s together. As
    many pairs of an alias and a model."""
    install_folder: Path | None = None
    """What machines without Weft are installed from that are to join, as `weft up` lays it out; none: `/install` has
    nothing."""
    request_log: bool = True
    """One log line for each inference request."""

    def check(self) -> None:
        """Raises BadSetting for what can't be meant."""
        if (self.http_certificate is None) != (self.http_key is None):
            raise BadSetting("WEFT_HTTP_CERTIFICATE and WEFT_HTTP_KEY belong together: set both or none")
        if self.http_certificate is not None and self.tls_folder is None:
            raise BadSetting(
                "WEFT_HTTP_CERTIFICATE needs WEFT_TLS_FOLDER: workers are shown the mesh's own certificate"
            )
        if self.require_keys and self.allow_anonymous:
            raise BadSetting("WEFT_REQUIRE_KEYS and WEFT_ALLOW_ANONYMOUS contradict each other: set one of them")
        self._check_sources()
        self.database()
        if self.attribution_key is not None:
            self.key_of_digests()
        self._check_origins()
        try:
            networks(self.trusted_proxies)
        except ValueError as error:
            raise BadSetting(f"WEFT_TRUSTED_PROXIES: {error}") from None
        if self.first_key is not None:
            try:
                parse_first_key(self.first_key)
            except ValueError as error:
                raise BadSetting(f"WEFT_FIRST_KEY: {error}") from None

    def database(self) -> str | None:
        """Where the tables for people are. Raises BadSetting."""
        if self.postgres_url_file is None:
            return self.postgres_url
        if self.postgres_url is not None:
            raise BadSetting("WEFT_POSTGRES_URL and WEFT_POSTGRES_URL_FILE mean the same: set one of them")
        try:
            return self.postgres_url_file.read_text().strip()
        except (OSError, UnicodeDecodeError):
            raise BadSetting(f"WEFT_POSTGRES_URL_FILE: {self.postgres_url_file} can't be read") from None

    def key_of_digests(self) -> bytes | None:
        """What digests of persons are made with; None where nothing of them is noted. Raises BadSetting."""
        if not self.log_attribution:
            return None
        if self.attribution_key is None:
            return secrets.token_bytes(MIN_KEY_BYTES)
        where = f"WEFT_ATTRIBUTION_KEY: {self.attribution_key}"
        try:
            key = self.attribution_key.read_bytes()
        except OSError as error:
            raise BadSetting(f"{where} can't be read: {error.strerror}") from None
        if len(key) < MIN_KEY_BYTES:
            raise BadSetting(f"{where} has {len(key)} bytes; give a file of {MIN_KEY_BYTES} random ones or more")
        return key

    def _check_origins(self) -> None:
        try:
            found = origins(self.cors_origins)
        except ValueError as error:
            raise BadSetting(f"WEFT_CORS_ORIGINS: {error}") from None
        if ANY in found and self.policy != "keys":
            what = "`*` lets every page of the world call without a key; name the origins, or set WEFT_REQUIRE_KEYS=1"
            raise BadSetting(f"WEFT_CORS_ORIGINS: {what}")
        if self.cors_everywhere and not found:
            raise BadSetting("WEFT_CORS_EVERYWHERE says where, not who: set WEFT_CORS_ORIGINS too")

    def _check_sources(self) -> None:
        if not self.sources_allow:
            return
        from weft_files.reach import Reach
        from weft_sources.environment import as_hosts

        try:
            Reach(as_hosts(self.sources_allow))
        except ValueError as error:
            raise BadSetting(f"WEFT_SOURCES_ALLOW: {error}") from None

    @property
    def card_settings(self) -> CardSettings:
        """Where models' small files are kept and asked for."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "weft"
        return CardSettings(
            self.metadata_folder or (self.state or cache) / "metadata",
            self.metadata_most_bytes,
            self.metadata_keep_bytes,
            self.hub or "",
            self.sources_allow,
        )

    @property
    def cors(self) -> Cors | None:
        """Which pages of other origins may call; None: none. Call `check` first."""
        found = origins(self.cors_origins)
        return Cors(found, self.cors_everywhere) if found else None

    @property
    def policy(self) -> Policy:
        """Who needs no key."""
        if self.allow_anonymous:
            return "anyone"
        return "keys" if self.require_keys or not is_loopback(self.http_host) else "local"
