"""In compose the registry sees the disk that the log's servers write to."""

from pathlib import Path

import pytest

from .compose_files import files, read

FOLDER = Path(__file__).resolve().parents[3] / "deploy/compose"


@pytest.mark.parametrize("more", [(), ("nats-three",)], ids=["one-server", "three-servers"])
def test_the_log_is_limited_by_the_disk_that_its_server_writes_to(more: tuple[str, ...]) -> None:
    services = read(files(FOLDER, *more))["services"]
    registry = services["registry"]
    mounts = {line.split(":")[1]: line.split(":") for line in registry["volumes"]}
    source, _, how = mounts[registry["environment"]["WEFT_NATS_STORE"]]
    assert "ro" == how
    assert f"{source}:/var/lib/weft/nats" in services["nats"]["volumes"]
