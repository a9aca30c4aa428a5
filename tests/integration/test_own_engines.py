"""Engines of one's own: the example is installed as its page says, told to a mesh, deployed, and answers."""

from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until

from .own_engines import ENGINES, installed, tell


@pytest.mark.slow
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
        # and the reranker says which text shares most with the query
        asked = {"model": "overlap", "query": "warp and weft", "documents": ["nothing", "the weft and the warp", "and"]}
        ranked = mesh.http.post(f"{mesh.url}/v1/rerank", json={**asked, "top_n": 2})
        assert 200 == ranked.status_code, ranked.text
        assert [(1, 3.0), (2, 1.0)] == [(each["index"], each["relevance_score"]) for each in ranked.json()["results"]]
        refused = mesh.http.post(f"{mesh.url}/v1/rerank", json={**asked, "model": "sorter"})
        assert (400, "model_does_not_rerank") == (refused.status_code, refused.json()["error"]["code"])
        # and each is ready by its profile's claim
        for name in ("sorter", "letters", "overlap"):
            (replica,) = until(f"{name} is ready", lambda name=name: mesh.ready_replicas(name))
            (placed,) = (e["fact"] for e in mesh.facts("replica", "placed") if e["key"] == replica["id"])
            assert [{"index": 0, "bytes": 128 << 20}] == placed["members"][0]["devices"]
