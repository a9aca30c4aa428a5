"""Engines of one's own: the example is installed as its page says, told to a mesh, deployed, and answers."""

import subprocess
from pathlib import Path

import pytest
import uv
from weft_testing.engine_environment import interpreter
from weft_testing.story import MeshUnderTest, until

EXAMPLE = Path(__file__).parents[2] / "libs" / "engine" / "examples" / "own_engines"
ENGINES = ("printer", "letters", "overlap")


def installed(folder: Path) -> Path:
    """An environment for each engine of the example, as a worker takes them."""
    site = folder / "site"
    install = [uv.find_uv_bin(), "pip", "install", "--offline", "--no-deps", "--target", str(site), str(EXAMPLE)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr
    for engine in ENGINES:
        interpreter(folder, site, engine)
    return folder / "backends"


def tell(mesh: MeshUnderTest, folder: Path, engine: str) -> None:
    """As the example's page says."""
    file = folder / f"{engine}.json"
    python = folder / "backends" / engine / "bin" / "python"
    asked = subprocess.run([python, "-m", "weft_engine.installed", engine], capture_output=True, check=True, timeout=60)
    file.write_bytes(asked.stdout)
    told = mesh.weft("engines", "add", str(file))
    assert 0 == told.returncode, told.stderr


@pytest.mark.sabotage("deaf-functions")
def test_a_program_that_prints_an_embedder_and_a_reranker_serve_after_a_page_of_code(tmp_path: Path) -> None:
    # given the example, installed for a worker and told to the mesh
    with MeshUnderTest(tmp_path, WEFT_BACKENDS=str(installed(tmp_path))) as mesh:
        for engine in ENGINES:
            tell(mesh, tmp_path, engine)

        # when they are deployed
        for words in (("printer", "--name", "sorter", "--engine-arg", "program=sort"), ("letters",), ("overlap",)):
            deployed = mesh.weft("deploy", f"engine:{words[0]}", *words[1:], timeout=90)
            assert 0 == deployed.returncode, deployed.stdout + deployed.stderr

        # then the program's lines are the answer, streamed as they come
        assert "apple\nbanana\n" == mesh.ask("banana\napple", "sorter")
        streamed = mesh.http.post(
            f"{mesh.url}/v1/chat/completions",
            json={
                "model": "sorter",
                "messages": [{"role": "user", "content": "c\nb\na"}],
                "stream": True,
                "stop": ["c"],
            },
        )
        assert all(each in streamed.text for each in ('"a\\n', '"stop"', "data: [DONE]")), streamed.text
        # and what it can't do is refused by name
        refused = mesh.http.post(
            f"{mesh.url}/v1/chat/completions",
            json={"model": "sorter", "messages": [{"role": "user", "content": "x"}], "top_p": 0.5},
        )
        assert (400, "top_p") == (refused.status_code, refused.json()["error"]["param"])
        assert "The printer engine can't honour `top_p`." == refused.json()["error"]["message"]

        # and the embedder's vectors come from the same route as any model's
        vectors = mesh.http.post(f"{mesh.url}/v1/embeddings", json={"model": "letters", "input": ["abba", "weft"]})
        assert 200 == vectors.status_code, vectors.text
        (first, second) = (each["embedding"] for each in vectors.json()["data"])
        assert ([3.0, 3.0, 1.0], 26) == (first[:3], len(second))
        # and each is ready by its profile's claim
        for name in ("sorter", "letters", "overlap"):
            (replica,) = until(f"{name} is ready", lambda name=name: mesh.ready_replicas(name))
            (placed,) = (e["fact"] for e in mesh.facts("replica", "placed") if e["key"] == replica["id"])
            assert [{"index": 0, "bytes": 128 << 20}] == placed["members"][0]["devices"]
