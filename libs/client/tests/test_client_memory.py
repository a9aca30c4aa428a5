"""What a replica holds against what it claims is said by device, and nothing is made up where it isn't known."""

from typing import Any

import pytest
from weft_client import api, routes
from weft_client.api import DeviceUse
from weft_client.gateway import Gateway
from weft_client.memory import in_words

GIB = 1 << 30
ONE = DeviceUse("a", "1 (H100)", 40 * GIB, 31 * GIB)
OTHER = DeviceUse("a", "2", 40 * GIB, None)


def test_what_is_held_is_said_where_all_of_it_is_known() -> None:
    assert "31.0 GiB of 40.0 GiB" == in_words((ONE,))
    assert "62.0 GiB of 80.0 GiB on 2 devices" == in_words((ONE, ONE))
    assert "80.0 GiB claimed on 2 devices" == in_words((ONE, OTHER))
    assert "" == in_words(())


def test_a_snapshot_has_each_claimed_device_by_name_also_of_a_gateway_that_tells_no_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given an answer with a node, and a replica on two of its devices
    member = {"node": "n-1", "rank": 0, "devices": [{"index": 1, "bytes": 40 * GIB}, {"index": 2, "bytes": 40 * GIB}]}
    node: dict[str, Any] = {"id": "n-1", "name": "a", "state": "healthy", "backends": [], "hardware": None}
    device = {"index": 1, "name": "H100", "vendor": "nvidia", "budget": None, "memory": 1, "unified": False}
    hardware = {"cpus": 1.0, "memory": 1, "devices": [device], "unsized": []}
    replica = {
        "id": "m-1",
        "model_name": "m",
        "revision": 1,
        "digest": "d",
        "state": "loading",
        "node_name": "a",
        "engine": None,
        "engine_version": "",
        "reason": None,
        "members": [member],
    }
    answer: dict[str, Any] = {
        "nodes": [{**node, "hardware": hardware}],
        "models": [],
        "replicas": [replica],
        "mesh": {"problems": []},
        "log": {"position": 1},
    }

    def told(_: Gateway) -> Any:
        return answer

    monkeypatch.setattr(routes, "status", told)
    gateway = Gateway("http://127.0.0.1:1")
    (row,) = api.snapshot(gateway).replicas
    claimed = [DeviceUse("a", "1 (H100)", 40 * GIB, None), DeviceUse("a", "2", 40 * GIB, None)]
    assert ("", claimed) == (row.progress, list(row.devices))
    # when the gateway tells what is held
    use = {"node": "n-1", "index": 1, "used": 31 * GIB}
    answer["progress"] = {"m-1": {"about": "loading weights", "devices": [use]}}
    (row,) = api.snapshot(gateway).replicas
    assert ("loading weights", [ONE, claimed[1]]) == (row.progress, list(row.devices))
