"""A request for a model that loads waits for it, and not for ever."""

from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}


@pytest.mark.slow
@pytest.mark.sabotage("no-waiting-room")
def test_a_request_waits_for_a_model_that_loads_and_is_told_where_it_stands_when_that_takes_too_long(
    tmp_path: Path,
) -> None:
    with MeshUnderTest(tmp_path, WEFT_LOADING_WAIT_S="8") as mesh:
        # given a model that is soon ready and one that is not
        for name, seconds in (("soon", 3), ("later", 250)):
            spec = {**SIMULATED, "engine_args": {"load_seconds": seconds}}
            mesh.deploy(name, spec).raise_for_status()
        until("both load", lambda: 2 == sum(r["state"] == "loading" for r in mesh.replicas()))
        detail = mesh.http.get(f"{mesh.url}/v1/models/later").json()["weft"]
        assert ("loading", None) == (detail["state"], detail["reason"])
        # when they are asked
        served, refused = mesh.chat("Hello", "soon", max_tokens=4), mesh.chat("Hello", "later", max_tokens=4)
        # then the one answers, and the other says where it stands and when to come again
        assert 200 == served.status_code, served.text
        assert 503 == refused.status_code
        assert 0 < int(refused.headers["retry-after"])
        said = refused.json()["error"]["message"]
        assert said.startswith("Model 'later' is not ready: replica ")
        assert said.endswith(" on node worker-1 is loading.")
