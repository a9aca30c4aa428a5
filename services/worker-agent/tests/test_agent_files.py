"""What a node finds on its disk, and what it serves of it."""

import json
import os
import struct
from dataclasses import replace
from pathlib import Path

import blake3
import httpx
import pytest
import weft_tiny
from starlette.applications import Starlette
from weft_contracts.card import BY_SLUG, slug_of
from weft_contracts.facts.layers import MOST_LAYER_RUNS, LayerRun
from weft_contracts.facts.values import MetadataFile
from weft_gguf.header import read_header
from weft_gguf.weights import weights_of_header
from weft_sources.config_weights import kv_bytes_per_token
from weft_testing.gguf_files import split_model
from weft_worker_agent.inbound.files import card_route, listening, metadata_route
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.metadata import Offer, offers
from weft_worker_agent.outbound.files.model_files import look, look_at_fetched

OF_MODEL = f"{BY_SLUG}/{slug_of('M/x')}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A safetensors folder as Hugging Face models have it."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "hidden_size": 512,
        "max_position_embeddings": 2048,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "a.safetensors").write_bytes(b"x" * 700)
    (tmp_path / "b.safetensors").write_bytes(b"x" * 300)
    return tmp_path


def test_a_gguf_file_is_found_with_what_its_claim_is_computed_from() -> None:
    found = look("builtin:tiny", "llama.cpp")

    weights = found.weights
    assert weft_tiny.gguf_path() == found.path
    assert weft_tiny.gguf_path().stat().st_size == found.size
    assert ("gguf", "llama", 1024) == (weights.format, weights.architecture, weights.context_tokens)
    assert kv_bytes_per_token(weights.layers, weights.kv_heads, 64) == weights.kv_bytes_per_token
    assert 0 < weights.weight_bytes < found.size


def test_a_model_in_several_files_is_found_as_one(tmp_path: Path) -> None:
    whole = look("builtin:tiny", "llama.cpp").weights
    parts = split_model(weft_tiny.gguf_path(), tmp_path / "tiny", 10)

    found = look(f"path:{parts[0]}", "llama.cpp")

    size = sum(part.stat().st_size for part in parts)
    assert (parts[0], size, size) == (found.path, found.size, found.weights.weight_bytes)
    assert whole.kv_bytes_per_token == found.weights.kv_bytes_per_token
    assert (whole.layer_runs, whole.output_bytes, whole.input_bytes) == (
        found.weights.layer_runs,
        found.weights.output_bytes,
        found.weights.input_bytes,
    )


def test_another_training_of_any_part_is_another_model(tmp_path: Path) -> None:
    parts = split_model(weft_tiny.gguf_path(), tmp_path / "tiny", 10)
    before = look(f"path:{parts[0]}", "llama.cpp")
    content = bytearray(parts[2].read_bytes())
    content[-1] ^= 1
    parts[2].write_bytes(content)

    after = look(f"path:{parts[0]}", "llama.cpp")

    assert f"{parts[0]} has changed since it was deployed: deploy it again" == after.another_than(before.weights)


def test_a_missing_part_is_named_in_one_sentence(tmp_path: Path) -> None:
    parts = split_model(weft_tiny.gguf_path(), tmp_path / "tiny", 10)
    parts[1].unlink()

    with pytest.raises(NotFound) as missing:
        look(f"path:{parts[0]}", "llama.cpp")

    assert f"{parts[0]}: {parts[0].name} is one of 3 files, and {parts[1].name} is missing" == str(missing.value)


def test_layers_that_are_alike_are_told_once() -> None:
    weights = look("builtin:tiny", "llama.cpp").weights

    assert [LayerRun(3, 402_432, 512)] == list(weights.layer_runs)
    assert (524_288, 524_800) == (weights.input_bytes, weights.output_bytes)


def test_a_file_with_too_many_sorts_of_layers_tells_none() -> None:
    header = read_header(weft_tiny.gguf_path())
    many = 2 * MOST_LAYER_RUNS
    for sorts, told in ((MOST_LAYER_RUNS, MOST_LAYER_RUNS), (many, 0)):
        sizes = tuple(range(sorts))
        made = replace(header, layers=sorts, layer_bytes=sizes, kv_heads=(1,) * sorts)
        assert told == len(weights_of_header(made).layer_runs)


def test_metadata_files_are_named_with_their_hashes() -> None:
    config = next(o for o in look("builtin:tiny", "llama.cpp").offers if o.file.name == "config.json")

    content = (weft_tiny.folder() / "config.json").read_bytes()
    assert MetadataFile(name="config.json", size=len(content), blake3=blake3.blake3(content).hexdigest()) == config.file


def test_the_template_inside_a_model_file_is_offered_where_no_file_has_one(tmp_path: Path) -> None:
    copy = tmp_path / "model.gguf"
    copy.write_bytes(weft_tiny.gguf_path().read_bytes())

    template = look(f"path:{copy}", "llama.cpp").offers[0]
    assert "chat_template.jinja" == template.file.name
    assert isinstance(template.content, bytes)

    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert [tmp_path / "chat_template.jinja"] == [o.content for o in look(f"path:{copy}", "llama.cpp").offers]


def test_a_folder_of_safetensors_is_found_for_vllm(folder: Path) -> None:
    found = look(f"path:{folder}", "vllm")

    weights = found.weights
    assert (folder, 1000, 1000) == (found.path, found.size, weights.weight_bytes)
    assert ("safetensors", "LlamaForCausalLM") == (weights.format, weights.architecture)
    assert (4, 8, 2, 2048) == (weights.layers, weights.heads, weights.kv_heads, weights.context_tokens)
    assert 2 * 4 * 2 * 64 * 2 == weights.kv_bytes_per_token


def test_the_simulated_engine_needs_no_files() -> None:
    assert None is look("simulated:", "simulated").path


def test_what_is_no_model_is_told_in_a_sentence(tmp_path: Path, folder: Path) -> None:
    letter, short, text = tmp_path / "letter.gguf", tmp_path / "short.gguf", tmp_path / "x.txt"
    letter.write_bytes(b"Dear Madam")
    whole = weft_tiny.gguf_path().read_bytes()
    short.write_bytes(whole[:-1000])
    (tmp_path / "half.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 5, 5))
    text.write_text("x")
    bare = tmp_path / "bare"
    bare.mkdir()
    asked = {
        ("path:/no/such.gguf", "llama.cpp"): "/no/such.gguf does not exist on this node",
        (f"path:{text}/model.gguf", "llama.cpp"): "a part of its path is a file",
        (f"path:{letter}", "llama.cpp"): "letter.gguf is not a GGUF file",
        (f"path:{short}", "llama.cpp"): f"truncated: {len(whole) - 1000} of {len(whole)} bytes",
        (f"path:{tmp_path}/half.gguf", "llama.cpp"): "truncated",
        (f"path:{folder}", "llama.cpp"): "is a folder, and llama.cpp loads one GGUF file: name the file",
        (f"path:{letter}", "vllm"): "is a file, and vllm loads a folder with safetensors files",
        (f"path:{bare}", "vllm"): "holds no safetensors file",
        ("path:model.gguf", "llama.cpp"): "is no absolute path",
        ("builtin:huge", "llama.cpp"): "there is no built-in model 'huge'; there are tiny, tiny-embed",
        ("simulated:", "llama.cpp"): "llama.cpp needs model files",
        ("ftp:x", "llama.cpp"): "'ftp:x' is no source",
        ("path:/dev/null", "llama.cpp"): "is no ordinary file",
    }
    for (source, engine), sentence in asked.items():
        with pytest.raises(NotFound) as missing:
            look(source, engine)
        assert sentence in str(missing.value)


@pytest.mark.parametrize("name", ["config.json", "a.safetensors"])
@pytest.mark.parametrize("led_to", ["/dev/zero", "/dev/tty", "/proc", "pipe"])
def test_a_device_a_pipe_or_a_folder_in_a_models_folder_is_named_and_not_read(
    folder: Path, name: str, led_to: str
) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / "pipe")
    (folder / name).symlink_to(led_to)

    with pytest.raises(NotFound) as missing:
        look(f"path:{folder}", "vllm")

    assert f"{folder / name} is no ordinary file" == str(missing.value)


def test_a_link_out_of_a_models_folder_is_not_offered_and_one_within_it_is(tmp_path: Path, folder: Path) -> None:
    # given a folder that strangers filled
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("private")
    (folder / "tokenizer.json").symlink_to(secret)
    (folder / "tokenizer_config.json").symlink_to("config.json")
    (folder / "generation_config.json").symlink_to("/dev/zero")
    (folder / "special_tokens_map.json").symlink_to("loop")
    (folder / "loop").symlink_to("special_tokens_map.json")
    (folder / "sub").symlink_to(secret.parent)
    (folder / "added_tokens.json").symlink_to(f"sub/{secret.name}")

    found = look(f"path:{folder}", "vllm")

    assert {"config.json", "tokenizer_config.json"} == {offer.file.name for offer in found.offers}


def test_a_snapshot_in_a_hubs_cache_offers_what_its_links_lead_to(tmp_path: Path) -> None:
    repository = tmp_path / "models--o--m"
    snapshot, blobs = repository / "snapshots" / "1234", repository / "blobs"
    for each in (snapshot, blobs):
        each.mkdir(parents=True)
    (blobs / "abc").write_text("{}")
    (snapshot / "tokenizer.json").symlink_to("../../blobs/abc")
    (snapshot / "config.json").symlink_to("../../../outside")
    (tmp_path / "outside").write_text("{}")

    assert ["tokenizer.json"] == [offer.file.name for offer in offers([snapshot])]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(weft_tiny.gguf_path().read_bytes())
    path.chmod(0)

    with pytest.raises(NotFound, match="may not be read by this node's worker"):
        look(f"path:{path}", "llama.cpp")


def test_a_config_that_is_no_json_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")

    with pytest.raises(NotFound, match=r"config\.json is no JSON"):
        look(f"path:{folder}", "vllm")


def test_a_config_of_another_shape_than_any_models_is_named_also_where_it_was_fetched(folder: Path) -> None:
    (folder / "config.json").write_text('{"text_config": "x"}')
    why = r"config\.json has a text_config of another shape than any model's: want a JSON object"
    with pytest.raises(NotFound, match=why):
        look(f"path:{folder}", "vllm")
    with pytest.raises(NotFound, match=why):
        look_at_fetched(folder, "model.safetensors", "vllm")


def test_the_first_folder_wins(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for place, text in ((one, "1"), (two, "22")):
        place.mkdir()
        (place / "config.json").write_text(text)

    assert [1] == [offer.file.size for offer in offers([one, two])]


@pytest.fixture
async def client(tmp_path: Path) -> httpx.AsyncClient:
    """A client of a file server that offers three files of one replica."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "secret").write_text("no")
    (tmp_path / "grown.json").write_text("longer than it was")

    def offer(replica: str, name: str) -> Offer | None:
        file = MetadataFile(name=name, size=2, blake3="0" * 64)
        known = {
            "config.json": Offer(file, tmp_path / "config.json"),
            "chat_template.jinja": Offer(file, b"hi"),
            "tokenizer.json": Offer(file, tmp_path / "gone.json"),
            "tokenizer_config.json": Offer(file, tmp_path / "grown.json"),
            "generation_config.json": Offer(file, tmp_path),
        }
        return known.get(name) if replica == "m-x-1" else None

    def offer_of_model(slug: str, name: str, checksum: str) -> Offer | None:
        found = offer("m-x-1", name) if slug == slug_of("M/x") else None
        return found if found is not None and checksum in ("", f"blake3:{found.file.blake3}") else None

    app = Starlette(routes=[metadata_route(offer), card_route(offer_of_model)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://node")


@pytest.mark.parametrize(
    ("status", "path"),
    [
        (200, "/metadata/m-x-1/config.json"),
        (200, "/metadata/m-x-1/chat_template.jinja"),
        (500, "/metadata/m-x-1/tokenizer.json"),
        (404, "/metadata/m-x-1/secret"),
        (404, "/metadata/m-y-1/config.json"),
        (404, "/metadata/m-x-1/..%2fsecret"),
        (404, "/metadata/m-x-1/..%2f..%2f..%2fetc%2fpasswd"),
        (404, "/metadata/m-x-1/../secret"),
        (404, "/metadata/m-x-1/"),
        (404, "/etc/passwd"),
        (200, f"{OF_MODEL}/config.json"),
        (200, f"{OF_MODEL}/config.json?checksum=blake3:{'0' * 64}"),
        (404, f"{OF_MODEL}/config.json?checksum=blake3:{'1' * 64}"),
        (404, f"{OF_MODEL}/config.json?checksum=x"),
        (200, f"{OF_MODEL}/chat_template.jinja"),
        (500, f"{OF_MODEL}/tokenizer.json"),
        (500, f"{OF_MODEL}/tokenizer_config.json"),
        (500, f"{OF_MODEL}/generation_config.json"),
        (404, f"{OF_MODEL}/secret"),
        (404, "/v1/metadata/m-x/config.json"),
        (404, f"{OF_MODEL}/..%2f..%2fetc%2fpasswd"),
        (404, f"{OF_MODEL}/../../etc/passwd"),
        (404, f"{OF_MODEL}/"),
    ],
)
async def test_only_registered_names_are_served(client: httpx.AsyncClient, status: int, path: str) -> None:
    assert status == (await client.get(path)).status_code


async def test_files_are_only_read(client: httpx.AsyncClient) -> None:
    assert 405 == (await client.put("/metadata/m-x-1/config.json", content=b"x")).status_code


async def test_a_part_of_a_file_is_answered_as_asked(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{OF_MODEL}/config.json", headers={"range": "bytes=1-1"})

    assert (206, b"}", "bytes 1-1/2") == (answer.status_code, answer.content, answer.headers["content-range"])


async def test_the_bytes_come_as_they_are(client: httpx.AsyncClient) -> None:
    assert (b"{}", b"hi") == (
        (await client.get("/metadata/m-x-1/config.json")).content,
        (await client.get("/metadata/m-x-1/chat_template.jinja")).content,
    )


def test_a_free_port_is_kept_over_restarts_and_given_up_when_it_is_taken(tmp_path: Path) -> None:
    first = listening(tmp_path, "127.0.0.1", 0)
    port = first.getsockname()[1]
    first.close()
    again = listening(tmp_path, "127.0.0.1", 0)
    assert port == again.getsockname()[1]

    other = listening(tmp_path, "127.0.0.1", 0)
    assert port != other.getsockname()[1]
    with pytest.raises(OSError, match="set WEFT_HTTP_HOST or WEFT_HTTP_PORT"):
        listening(tmp_path, "127.0.0.1", port)
    again.close()
    other.close()
