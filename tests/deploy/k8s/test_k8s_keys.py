"""Each part finds in its pod what it is told to find there, of what `weft found --kubernetes` made."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_contracts import certificates
from weft_contracts.api_key import parse_first_key
from weft_contracts.ids import token_hash
from weft_gateway.settings import GatewaySettings
from weft_identity import authority, trust
from weft_registry.settings import RegistrySettings
from weft_runtime.settings import ServiceSettings
from weft_runtime.tls_settings import tls_folder
from weft_testing.story import until
from weft_worker_agent.outbound.supervisor import join_token

from . import founded
from .pod_faults import SETTINGS
from .rendered import OVERLAYS, Objects, Workload, render, secret_sources, workload, workloads

SERVERS = {"dev": ("--nats", "nats-0=nats-0.nats")}
"""What is said of them where there are other than three."""


@pytest.fixture(scope="module", params=OVERLAYS)
def mesh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Objects, Objects]:
    """An overlay, and what was founded for it."""
    overlay = str(request.param)
    folder = tmp_path_factory.mktemp("founded") / "mesh"
    return render(overlay), founded.found(folder, *SERVERS.get(overlay, ()))


def of_clusters(objects: Objects) -> dict[str, founded.Files]:
    """What CloudNativePG writes for a Cluster's owner."""
    return {
        f"{each['metadata']['name']}-app": {"uri": b"postgresql://weft:secret@postgres-rw.weft:5432/weft"}
        for each in objects
        if each["kind"] == "Cluster"
    }


def service(of: Workload, values: dict[str, str]) -> ServiceSettings:
    assert of.target is not None
    kind = SETTINGS[of.target]
    known = {name.removeprefix("WEFT_").lower(): value for name, value in values.items()}
    given: dict[str, Any] = {name: value for name, value in known.items() if name in kind.model_fields}
    made = kind(**given)
    assert isinstance(made, ServiceSettings)
    return made


def test_a_service_finds_its_keys_and_believes_its_settings(mesh: tuple[Objects, Objects], tmp_path: Path) -> None:
    objects, made = mesh
    keys = founded.secrets(made) | of_clusters(objects)
    for each in workloads(objects):
        if each.target is None or each.part == "worker":
            continue
        root = tmp_path / each.name
        founded.lay_out(each, f"{each.name}-1", keys, root)
        settings = service(each, founded.told(each, founded.mesh(made), root))
        folder = tls_folder(settings)
        assert folder is not None
        folder.check()
        assert settings.nats_credentials is not None
        assert "BEGIN NATS USER JWT" in settings.nats_credentials.read_text()
        assert settings.nats_url.startswith("tls://nats-0.nats:4222")
        if isinstance(settings, GatewaySettings):
            settings.check()
            assert str(settings.database()).startswith("postgresql://weft:")
            assert settings.first_key is not None
            parse_first_key(settings.first_key)
        if isinstance(settings, RegistrySettings):
            assert settings.trust is not None
            trust.load(settings.trust)
            authority.load(settings.trust)


def test_a_workers_token_is_the_one_that_the_registry_approves_and_names_the_gateways_authority(
    mesh: tuple[Objects, Objects], tmp_path: Path
) -> None:
    objects, made = mesh
    each, keys = workload(objects, "worker"), founded.secrets(made)
    founded.lay_out(each, "worker-0", keys, tmp_path)
    values = founded.told(each, founded.mesh(made), tmp_path)
    token, digest = certificates.split_token(join_token.taken(dict(values)).decode())
    (tmp_path / "trust").mkdir()
    for name, text in keys["trust"].items():
        (tmp_path / "trust" / name).write_bytes(text)
        (tmp_path / "trust" / name).chmod(0o440)
    assert (founded.mesh(made)["WEFT_BOOTSTRAP_TOKEN_HASH"], authority.load(tmp_path / "trust").digest) == (
        token_hash(token),
        digest,
    )


def test_each_server_finds_its_own_configuration_and_nats_takes_it(
    mesh: tuple[Objects, Objects], tmp_path: Path
) -> None:
    objects, made = mesh
    each = workload(objects, "nats")
    for number in range(each.object["spec"]["replicas"]):
        root = tmp_path / str(number)
        founded.lay_out(each, f"nats-{number}", founded.secrets(made), root)
        conf = root / "run/weft/nats.conf"
        conf.chmod(0o600)
        text = conf.read_text().replace("/run/weft", f"{root}/run/weft").replace("/var/lib", f"{root}/var/lib")
        assert f'"server_name": "nats-{number}"' in text
        assert '"http": "0.0.0.0:8222"' in text
        assert not [port for port in each.ports.values() if f":{port}" not in text and port != 6222]
        conf.write_text(text)
        binary = Path(sys.executable).with_name("nats-server")
        command = [str(binary), *each.container["command"][1:-1], str(conf), "-t"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert 0 == done.returncode, done.stderr


def test_what_nobody_in_the_cluster_needs_stays_in_the_folder(mesh: tuple[Objects, Objects]) -> None:
    objects, made = mesh
    used = {name for each in workloads(objects) for name in _used(each)}
    assert set() == used - founded.secrets(made).keys() - of_clusters(objects).keys()
    assert not [name for name, files in founded.secrets(made).items() if "admin-key" in {name, *files}]
    assert ["trust"] == [name for name, files in founded.secrets(made).items() if authority.KEY_FILE in files]


def _used(of: Workload) -> list[str]:
    return [name for volume in of.pod["volumes"] for name, _ in secret_sources(volume)]


def test_a_servers_probes_are_answered_by_a_real_one(tmp_path: Path) -> None:
    # given a server by its own configuration, on other ports
    each = workload(render("dev"), "nats")
    made = founded.found(tmp_path / "mesh", *SERVERS["dev"])
    founded.lay_out(each, "nats-0", founded.secrets(made), tmp_path)
    conf = tmp_path / "run/weft/nats.conf"
    said = json.loads(conf.read_text().replace("/run/weft", f"{tmp_path}/run/weft").replace("/var/lib", f"{tmp_path}"))
    conf.chmod(0o600)
    conf.write_text(json.dumps(said | {"listen": "127.0.0.1:-1", "http": "127.0.0.1:-1"}))
    command = [str(Path(sys.executable).with_name("nats-server")), "--config", str(conf)]
    with subprocess.Popen([*command, "--ports_file_dir", str(tmp_path)], stderr=subprocess.DEVNULL) as server:
        try:
            file = until("it listens", lambda: next(iter(tmp_path.glob("nats-server_*.ports")), None))
            (monitor,) = until("it says where", lambda: json.loads(file.read_text()))["monitoring"]
            # then each probe is content once it has started, and a path that isn't there would not be
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                asked = each.container[kind]["httpGet"]["path"]
                until(kind, lambda asked=asked: 200 == httpx.get(f"{monitor}{asked}").status_code)
            assert 404 == httpx.get(f"{monitor}/readyz").status_code
        finally:
            server.terminate()
