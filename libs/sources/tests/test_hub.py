"""A hub is asked by huggingface_hub's own client, against a real small server."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from weft_contracts.facts.source import HfSource, SourceFile
from weft_files.reach import Reach
from weft_sources.listing import addresses, list_source, local_file, open_ranged, read_small
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_testing.hub_server import HubServer, hub_server

WEIGHTS = b"GGUF" + bytes(range(256)) * 12_000
SOURCE = HfSource(repository="maker/model")


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        server.repository(
            SOURCE.repository, {"m-Q4_0.gguf": WEIGHTS, "config.json": b"{}", "README.md": b"---\nlicense: mit\n---\n"}
        )
        yield server


def settings_for(
    hub: HubServer, *, token: str = "", offline: bool = False, folder: Path | None = None, timeout_s: float = 10.0
) -> SourceSettings:
    reach = Reach([f"127.0.0.1:{hub.hub.port}", f"127.0.0.1:{hub.cdn.port}"])
    return SourceSettings(
        hub=hub.url, hub_token=token, offline=offline, hub_folder=folder, reach=reach, timeout_s=timeout_s
    )


def refusal(source: HfSource, settings: SourceSettings) -> str:
    with pytest.raises(SourceRefused) as refused:
        list_source(source, ("gguf",), settings)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_branch_is_pinned_to_its_commit_with_sizes_and_checksums(hub: HubServer) -> None:
    listing = list_source(SOURCE, ("gguf",), settings_for(hub))
    commit = hub.repositories[SOURCE.repository].branches["main"]
    git = hashlib.sha1(b"blob 2\0{}").hexdigest()
    assert HfSource(repository=SOURCE.repository, revision=commit) == listing.source
    assert (
        SourceFile(name="m-Q4_0.gguf", size=len(WEIGHTS), checksum=f"sha256:{hashlib.sha256(WEIGHTS).hexdigest()}"),
        SourceFile(name="config.json", size=2, checksum=f"git:{git}"),
    ) == listing.files
    assert ("apache-2.0", False) == (listing.licence, listing.gated)


def test_a_listing_asks_once_and_moves_no_byte_of_the_weights(hub: HubServer) -> None:
    list_source(SOURCE, ("gguf",), settings_for(hub))
    assert {"GET /api/models/maker/model": 1} == dict(hub.asked)


def test_what_was_pinned_stays_when_the_branch_moves_on(hub: HubServer) -> None:
    pinned = list_source(SOURCE, ("gguf",), settings_for(hub))
    hub.repositories[SOURCE.repository].commit({"m-Q4_0.gguf": WEIGHTS + b"!"})
    again = list_source(pinned.source, ("gguf",), settings_for(hub))
    assert pinned == again
    assert len(WEIGHTS) + 1 == list_source(SOURCE, ("gguf",), settings_for(hub)).files[0].size


def test_an_index_of_safetensors_is_read_and_checked(hub: HubServer) -> None:
    index = json.dumps({"weight_map": {"a": "b.safetensors"}}).encode()
    files = {"a.safetensors": b"a", "b.safetensors": b"b", "config.json": b"{}", "model.safetensors.index.json": index}
    hub.repository("maker/tensors", files)
    listing = list_source(HfSource(repository="maker/tensors"), ("safetensors",), settings_for(hub))
    names = ["b.safetensors", "config.json", "model.safetensors.index.json"]
    assert names == [file.name for file in listing.files]


@pytest.mark.parametrize("token", ["", "hf_stranger"])
def test_a_gated_repository_is_refused_with_the_remedy(hub: HubServer, token: str) -> None:
    hub.repository("maker/gated", {"m.gguf": WEIGHTS}, gated=True)
    hub.tokens["hf_stranger"] = set()
    said = refusal(HfSource(repository="maker/gated"), settings_for(hub, token=token))
    assert (
        "maker/gated is gated: accept its terms on the hub, and give the workers a token of that account (HF_TOKEN), "
        "or name a secret that holds one (--source-secret)" == said
    )


def test_who_accepted_the_terms_is_told_that_there_are_some(hub: HubServer) -> None:
    hub.repository("maker/gated", {"m.gguf": WEIGHTS}, gated=True)
    hub.tokens["hf_friend"] = {"maker/gated"}
    settings = settings_for(hub, token="hf_friend")
    listing = list_source(HfSource(repository="maker/gated"), ("gguf",), settings)
    assert listing.gated
    assert WEIGHTS[:10] == open_ranged(listing.source, listing.files[0], settings).read(10)


def test_a_repository_that_is_not_there_is_said_to_be_missing_or_private(hub: HubServer) -> None:
    said = refusal(HfSource(repository="maker/nothing"), settings_for(hub))
    assert (
        f"maker/nothing is not on {hub.url}: check the name; if it is private, give the workers a token (HF_TOKEN), "
        "or name a secret that holds one" == said
    )


def test_a_revision_that_is_not_there_is_named(hub: HubServer) -> None:
    said = refusal(HfSource(repository="maker/model", revision="v9"), settings_for(hub))
    assert "maker/model has no revision v9: name a branch, a tag or a commit of it" == said


def test_a_token_that_the_hub_does_not_know_is_said_to_be_wrong_and_not_shown(hub: HubServer) -> None:
    settings = settings_for(hub, token="hf_of_nobody")
    said = refusal(SOURCE, settings)
    assert f"{hub.url} does not take the workers' token: give them a valid one (HF_TOKEN)" == said
    assert "hf_of_nobody" not in repr(settings)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_hub_in_trouble_may_be_asked_again_later(hub: HubServer, status: int) -> None:
    hub.broken = lambda path: status
    with pytest.raises(SourceAway, match=f"answers {status} for maker/model: try again later"):
        list_source(SOURCE, ("gguf",), settings_for(hub))


def test_a_hub_that_is_not_there_is_said_to_be_away() -> None:
    with hub_server() as gone:
        settings = settings_for(gone)
    with pytest.raises(SourceAway, match="can't be reached"):
        list_source(SOURCE, ("gguf",), settings)


def test_a_hub_in_the_own_network_is_asked_only_where_it_is_named(hub: HubServer) -> None:
    said = refusal(SOURCE, SourceSettings(hub=hub.url))
    assert "WEFT_SOURCES_ALLOW" in said
    assert {} == dict(hub.asked)


def test_the_token_goes_to_the_hub_and_not_to_its_cdn(hub: HubServer) -> None:
    hub.tokens["hf_friend"] = set()
    settings = settings_for(hub, token="hf_friend")
    listing = list_source(SOURCE, ("gguf",), settings)
    (address,) = addresses(listing.source, listing.files[0], settings)
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        assert WEIGHTS == opened.read()
    assert ("Bearer hf_friend", "hub") == (address.headers["authorization"], address.redirects)
    assert set() == hub.tokens_at_cdn
    assert "hf_friend" not in repr(address)


def test_a_header_is_read_without_the_weights(hub: HubServer) -> None:
    big = b"GGUF" + bytes(20 << 20)
    hub.repository("maker/big", {"m.gguf": big})
    settings = settings_for(hub)
    listing = list_source(HfSource(repository="maker/big"), ("gguf",), settings)
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        assert b"GGUF" == opened.read(4)
        opened.seek(-3, 2)
        assert bytes(3) == opened.read()
    assert 2 == hub.count("GET /repos/maker/big")


def test_a_small_file_that_is_not_what_the_hub_said_is_refused(hub: HubServer) -> None:
    settings = settings_for(hub)
    listing = list_source(SOURCE, ("gguf",), settings)
    lie = listing.files[1].model_copy(update={"checksum": f"git:{'0' * 40}"})
    assert b"{}" == read_small(listing.source, listing.files[1], settings, 100)
    with pytest.raises(SourceRefused, match="is not what its git says"):
        read_small(listing.source, lie, settings, 100)
    with pytest.raises(SourceRefused, match="has 2 bytes, and at most 1"):
        read_small(listing.source, listing.files[1], settings, 1)


FILL = """
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[2], cache_dir=sys.argv[1], tqdm_class=None)
"""


@pytest.fixture
def folder(hub: HubServer, tmp_path: Path) -> Path:
    """A cache folder that huggingface_hub filled in a process of its own."""
    held = tmp_path / "hub"
    settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment = {"PATH": os.environ["PATH"], "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "*", **settings}
    command = [sys.executable, "-c", FILL, str(held), SOURCE.repository]
    subprocess.run(command, env=environment, check=True, timeout=120, capture_output=True)
    return held


def test_offline_files_of_the_folder_are_listed_as_the_hub_would(hub: HubServer, folder: Path) -> None:
    online = list_source(SOURCE, ("gguf",), settings_for(hub))
    hub.asked.clear()
    settings = settings_for(hub, offline=True, folder=folder)
    listing = list_source(SOURCE, ("gguf",), settings)
    assert (online.source, online.files, "mit") == (listing.source, listing.files, listing.licence)
    local = local_file(listing.source, listing.files[0], settings)
    assert local is not None
    assert WEIGHTS == local.read_bytes()
    assert () == addresses(listing.source, listing.files[0], settings)
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        assert b"GGUF" == opened.read(4)
    assert {} == dict(hub.asked)


def test_a_hub_that_is_away_costs_nothing_where_the_folder_has_the_files(hub: HubServer, folder: Path) -> None:
    settings = settings_for(hub, folder=folder)
    online = list_source(SOURCE, ("gguf",), settings)
    hub.broken = lambda path: 503
    assert online.files == list_source(SOURCE, ("gguf",), settings).files


@pytest.mark.parametrize("revision", ["", "main", "v9", "../../refs/main", "../main", "0" * 40])
def test_offline_and_not_there_is_one_sentence(hub: HubServer, tmp_path: Path, revision: str) -> None:
    source = HfSource(repository="maker/model", revision=revision)
    said = refusal(source, settings_for(hub, offline=True, folder=tmp_path))
    assert f"is not in {tmp_path}, and this node is offline (HF_HUB_OFFLINE): download it there first" in said
    assert "(HF_HUB_CACHE)" in refusal(source, settings_for(hub, offline=True))


def test_a_link_that_leads_out_of_the_folder_is_no_file_of_it(hub: HubServer, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.gguf"
    secret.write_bytes(WEIGHTS)
    commit = hub.repositories[SOURCE.repository].branches["main"]
    link = folder / "models--maker--model" / "snapshots" / commit / "m-Q4_0.gguf"
    link.unlink()
    link.symlink_to(secret)
    settings = settings_for(hub, offline=True, folder=folder)
    assert "holds nothing that this engine loads" in refusal(SOURCE, settings)
    assert None is local_file(
        HfSource(repository="maker/model", revision=commit), SourceFile(name="m-Q4_0.gguf", size=len(WEIGHTS)), settings
    )


def test_a_listing_writes_nothing_and_asks_nobody_else(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.AGENT_HARNESSES_PATH", str(tmp_path / "agents.json"))
    list_source(SOURCE, ("gguf",), settings_for(hub))
    assert [] == list(tmp_path.iterdir())
    assert 0 == hub.count("agent")
    assert ("", "") == capfd.readouterr()
