"""A model that lies at a hub is known by its headers before any of it is fetched."""

import json
from collections.abc import Generator

import pytest
import weft_tiny
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.source import HfSource, SourceFile
from weft_sources.environment import source_settings
from weft_sources.settings import SourceSettings
from weft_testing.gguf_files import split_model
from weft_testing.hub_server import HubServer, hub_server
from weft_worker_agent.outbound.files import remote_files
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.looks_elsewhere import LooksElsewhere
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.files.remote_files import HEADER_PIECE, fingerprint_elsewhere, look_elsewhere
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets

TINY = HfSource(repository="o/tiny")


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture
def settings(hub: HubServer) -> SourceSettings:
    return source_settings(hub=hub.url, allow=("127.0.0.1",), environ={"HF_HUB_CACHE": "/nowhere"})


def test_a_gguf_at_a_hub_says_what_the_file_itself_says_and_names_its_commit(
    hub: HubServer, settings: SourceSettings
) -> None:
    # given
    content = weft_tiny.gguf_path().read_bytes()
    commit = hub.repository("o/tiny", {"tiny-F16.gguf": content, "README.md": b"x"})
    # when
    found = look_elsewhere(TINY, "llama.cpp", settings, within_s=30)
    # then
    own = look(f"path:{weft_tiny.gguf_path()}", "llama.cpp").weights
    assert own.model_copy(update={"fingerprint": ""}) == found.weights.model_copy(update={"fingerprint": ""})
    assert 16 == len(found.weights.fingerprint)
    assert (commit, "apache-2.0") == (getattr(found.pinned, "revision", ""), found.licence)
    assert not found.gated
    assert ("tiny-F16.gguf", len(content)) == (found.files[0].name, found.files[0].size)
    assert found.size == sum(file.size for file in found.files)


def test_a_gate_that_this_nodes_account_has_passed_is_told(hub: HubServer) -> None:
    hub.repository("o/tiny", {"tiny-F16.gguf": weft_tiny.gguf_path().read_bytes()}, gated=True)
    hub.tokens["hf_friend"] = {"o/tiny"}
    friends = source_settings(
        hub=hub.url, allow=("127.0.0.1",), environ={"HF_HUB_CACHE": "/nowhere", "HF_TOKEN": "hf_friend"}
    )
    found = look_elsewhere(TINY, "llama.cpp", friends, within_s=30)
    assert (True, "apache-2.0") == (found.gated, found.licence)


def test_all_parts_of_a_split_model_are_read_and_counted(
    hub: HubServer, settings: SourceSettings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = split_model(weft_tiny.gguf_path(), tmp_path_factory.mktemp("m") / "tiny-F16", 10)
    hub.repository("o/tiny", {part.name: part.read_bytes() for part in parts})
    found = look_elsewhere(TINY, "llama.cpp", settings, within_s=30)
    assert [part.name for part in parts] == [file.name for file in found.files]
    assert look(f"path:{parts[0]}", "llama.cpp").weights.weight_bytes == found.weights.weight_bytes


def test_a_folder_of_safetensors_is_known_by_its_headers(hub: HubServer, settings: SourceSettings) -> None:
    folder = weft_tiny.folder()
    names = ("model.safetensors", "config.json", "tokenizer.json")
    hub.repository("o/tiny", {name: (folder / name).read_bytes() for name in names})
    found = look_elsewhere(TINY, "vllm", settings, within_s=30)
    own = look(f"path:{folder}", "vllm").weights
    assert own.model_copy(update={"fingerprint": ""}) == found.weights.model_copy(update={"fingerprint": ""})
    assert found.weights.shape is not None
    assert {"F16"} == set(found.weights.shape.tensor_bytes)
    assert set(names) == {file.name for file in found.files}
    assert 1 == hub.count("GET /repos/o/tiny"), "one request for the header"
    assert (0, HEADER_PIECE) == (hub.wholes["model.safetensors"], hub.given["model.safetensors"])


CONFIG = json.dumps(
    {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "torch_dtype": "bfloat16"}
).encode()


def safetensors(*dtypes: str, size: int = 100_000) -> bytes:
    """A file with a tensor of so many bytes of each type."""
    header = {
        f"x{place}": {"dtype": dtype, "shape": [size], "data_offsets": [place * size, (place + 1) * size]}
        for place, dtype in enumerate(dtypes)
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size * len(dtypes))


def parted(*parts: bytes) -> dict[str, bytes]:
    """A model in so many files."""
    names = [f"model-{number:05}-of-{len(parts):05}.safetensors" for number in range(1, len(parts) + 1)]
    index = json.dumps({"weight_map": {f"w{place}": name for place, name in enumerate(names)}}).encode()
    return {"config.json": CONFIG, "model.safetensors.index.json": index} | dict(zip(names, parts, strict=True))


def test_sizes_come_by_the_type_of_each_tensor_of_all_files(hub: HubServer, settings: SourceSettings) -> None:
    hub.repository("o/tiny", parted(*(safetensors("BF16", "F32") for _ in range(11)), safetensors("F8_E4M3")))
    shape = look_elsewhere(TINY, "vllm", settings, within_s=30).weights.shape
    assert shape is not None
    assert {"BF16": 1_100_000, "F32": 1_100_000, "F8_E4M3": 100_000} == shape.tensor_bytes
    assert "" == shape.fault


def test_a_header_longer_than_what_is_asked_first_comes_by_two_more_requests(
    hub: HubServer, settings: SourceSettings
) -> None:
    hub.repository("o/tiny", {"config.json": CONFIG, "model.safetensors": safetensors(*["BF16"] * 3000, size=100)})
    shape = look_elsewhere(TINY, "vllm", settings, within_s=30).weights.shape
    assert shape is not None
    assert {"BF16": 300_000} == shape.tensor_bytes
    assert 3 >= hub.count("GET /repos/o/tiny")


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (
            (10**12).to_bytes(8, "little") + bytes(1 << 20),
            "is no safetensors file: its header would take 1000000000000 of 1048584 bytes",
        ),
        (
            (3 << 20).to_bytes(8, "little") + bytes(4 << 20),
            f"has a header of {3 << 20} bytes, and at most {1 << 20} are read of it",
        ),
        (safetensors("BF16")[:-1], "is truncated, or no safetensors file"),
        (b"x", "is truncated: its header has 1 of 8 bytes"),
    ],
)
def test_a_header_that_is_none_or_much_too_large_costs_one_request_and_is_why_nothing_is_claimed(
    hub: HubServer, settings: SourceSettings, monkeypatch: pytest.MonkeyPatch, part: bytes, why: str
) -> None:
    monkeypatch.setattr(remote_files, "MOST_HEADERS", 2 << 20)
    hub.repository("o/tiny", parted(safetensors("BF16"), part, safetensors("BF16"), safetensors("BF16")))
    shape = look_elsewhere(TINY, "vllm", settings, within_s=30).weights.shape
    assert shape is not None
    assert shape.fault.startswith(f"model-00002-of-00004.safetensors {why}")
    assert {} == shape.tensor_bytes
    assert min(HEADER_PIECE, len(part)) == hub.given["model-00002-of-00004.safetensors"]


def test_headers_that_a_hub_does_not_give_are_no_fault_of_the_model(hub: HubServer, settings: SourceSettings) -> None:
    hub.repository("o/tiny", parted(safetensors("BF16"), safetensors("BF16")))
    hub.broken = lambda path: 503 if path.startswith("/repos/") and path.endswith("2-of-00002.safetensors") else 0
    with pytest.raises(NotFound, match="503"):
        look_elsewhere(TINY, "vllm", settings, within_s=30)
    hub.broken = lambda path: 0
    with pytest.raises(NotFound, match="its headers could not be read in time"):
        look_elsewhere(TINY, "vllm", settings, within_s=-1)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"m-F16.gguf": b"GGML" + b"x" * 2000}, "m-F16.gguf is not a GGUF file: it starts with b'GGML'"),
        ({"model.safetensors": b"x" * 10}, "this engine"),
        ({"README.md": b"x"}, "holds nothing that this engine loads"),
    ],
)
def test_what_no_engine_loads_is_refused_in_a_sentence(
    hub: HubServer, settings: SourceSettings, files: dict[str, bytes], words: str
) -> None:
    hub.repository("o/tiny", files)
    with pytest.raises(NotFound) as refused:
        look_elsewhere(TINY, "llama.cpp", settings, within_s=30)
    assert words in str(refused.value)


def test_a_configuration_that_is_none_is_named(hub: HubServer, settings: SourceSettings) -> None:
    hub.repository("o/tiny", {"model.safetensors": b"x" * 10, "config.json": json.dumps([1]).encode()})
    with pytest.raises(NotFound, match=r"config\.json of hf:o/tiny holds no JSON object"):
        look_elsewhere(TINY, "vllm", settings, within_s=30)


def test_more_files_than_a_spec_holds_are_told_before_any_header_is_read(
    hub: HubServer, settings: SourceSettings
) -> None:
    names = [f"model-{number:05}-of-00480.safetensors" for number in range(1, 481)]
    index = json.dumps({"weight_map": {name: name for name in names}}).encode()
    files = {"config.json": b"{}", "model.safetensors.index.json": index} | dict.fromkeys(names, b"x")
    hub.repository("o/tiny", files)
    with pytest.raises(NotFound, match=r"hf:o/tiny: the model has 482 files, \d+ too many"):
        look_elsewhere(TINY, "vllm", settings, within_s=30)
    assert 1 == hub.count("GET /repos/o/tiny"), "the index alone"


def test_a_hub_that_does_not_know_the_repository_says_what_would_help(settings: SourceSettings) -> None:
    with pytest.raises(NotFound, match=r"o/tiny is not on .*: check the name"):
        look_elsewhere(TINY, "llama.cpp", settings, within_s=30)


def test_an_engine_that_takes_no_files_and_one_that_nobody_knows_are_named(settings: SourceSettings) -> None:
    with pytest.raises(NotFound, match="simulated takes no files"):
        look_elsewhere(TINY, "simulated", settings, within_s=30)
    with pytest.raises(NotFound, match="knows no engine made-up"):
        look_elsewhere(TINY, "made-up", settings, within_s=30)


async def test_a_source_that_does_not_answer_in_time_is_given_up(hub: HubServer, settings: SourceSettings) -> None:
    looks = LooksElsewhere(SourceSecrets(settings), within_s=0.001)
    with pytest.raises(NotFound, match=r"o/tiny was not told within 0\.001 s"):
        await looks.look(TINY, "llama.cpp", BUILTIN, ())
    looks.close()


def test_a_fingerprint_is_of_names_sizes_and_checksums_in_whatever_order() -> None:
    one, two = SourceFile(name="a", size=1, checksum="git:" + "0" * 40), SourceFile(name="b", size=2)
    same = fingerprint_elsewhere((one, two))
    assert same == fingerprint_elsewhere((two, one))
    others = (two.model_copy(update={"size": 3}), two.model_copy(update={"name": "c"}))
    assert not {same} & {fingerprint_elsewhere((one, other)) for other in others}
    assert same != fingerprint_elsewhere((one.model_copy(update={"checksum": ""}), two))


def test_settings_go_over_the_variables_that_other_tools_read() -> None:
    environ = {
        "HF_ENDPOINT": "https://mirror.example/",
        "HF_TOKEN": "hf_word",
        "HF_HUB_OFFLINE": "yes",
        "HF_HOME": "/models/hf",
        "AWS_ACCESS_KEY_ID": "A",
        "AWS_SECRET_ACCESS_KEY": "B",
        "AWS_SESSION_TOKEN": "C",
    }
    said = source_settings(environ=environ)
    assert ("https://mirror.example", "hf_word", True) == (said.hub, said.hub_token, said.offline)
    assert ("/models/hf/hub", "A", "B", "C") == (
        str(said.hub_folder),
        said.s3_access_key,
        said.s3_secret_key,
        said.s3_session_token,
    )
    own = source_settings(
        hub="https://own.example", offline=False, s3_access_key="X", s3_secret_key="Y", environ=environ
    )
    assert ("https://own.example", False) == (own.hub, own.offline)
    assert ("X", "Y", "") == (own.s3_access_key, own.s3_secret_key, own.s3_session_token), "a key is never mixed"
    assert "hf_word" not in repr(said)
    assert "https://huggingface.co" == source_settings(environ={}).hub
