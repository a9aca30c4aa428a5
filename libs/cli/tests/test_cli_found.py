"""`weft found`: the keys of a mesh whose parts others start."""

import base64
import json
import ssl
import sys
from pathlib import Path

import pytest
from cryptography import x509
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.commands import found as command
from weft_client.failure import Exit, Failure
from weft_contracts import catalogue
from weft_contracts.api_key import first_key
from weft_contracts.certificates import split_token
from weft_contracts.ids import token_hash, token_id
from weft_identity import authority


def found(*words: str) -> str:
    """What the command prints. Raises Failure as it does."""
    done = CliRunner().invoke(app, ["found", *words])
    if isinstance(done.exception, Failure):
        raise done.exception
    assert 0 == done.exit_code, done.output
    return done.stdout


def names_of(certificate: Path) -> set[str]:
    read = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in names}


def settings(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "mesh.env").read_text().splitlines())


def test_each_part_gets_a_folder_with_what_it_needs_and_nobody_else_reads_any(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    said = found(
        str(mesh), "--gateway", "weft.example.org", "--nats", "a=a.nats", "--nats", "b=b.nats:4000", "--nats", "c=c"
    )
    assert "NATS is at tls://a.nats:4222,tls://b.nats:4000,tls://c:4222" in said
    keys = {"authority.pem", "certificate.pem", "key.pem"}
    for name in catalogue.SERVICES:
        own = mesh / "services" / name
        assert {*keys, "nats.creds"} == {each.name for each in own.iterdir()}
        ssl.create_default_context().load_cert_chain(own / "certificate.pem", own / "key.pem")
    assert {"weft.example.org", "localhost", "127.0.0.1"} <= names_of(mesh / "services/gateway/certificate.pem")
    conf = json.loads((mesh / "nats/b/nats.conf").read_text())
    assert {*keys, "nats.conf"} == {each.name for each in (mesh / "nats/b").iterdir()}
    assert ("0.0.0.0:4000", "127.0.0.1:8222") == (conf["listen"], conf["http"])
    # the registry limits the streams; a limit of the server's own would be what is free at its start
    assert 1 << 50 == conf["jetstream"]["max_file_store"]
    assert ("/run/weft/key.pem", "/var/lib/weft/nats/jetstream") == (
        conf["tls"]["key_file"],
        conf["jetstream"]["store_dir"],
    )
    assert not [each for each in mesh.rglob("*") if each.stat().st_mode & 0o077]


def test_services_are_told_hashes_and_workers_and_the_admin_the_secrets(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    found(str(mesh), "--nodes", "3", "--postgres", "db.example.org:5433")
    secret, digest = split_token((mesh / "join-token").read_text())
    told, admin = settings(mesh), (mesh / "admin-key").read_text().strip()
    assert authority.load(mesh / "trust").digest == digest
    assert (token_id(secret), token_hash(secret), "3") == tuple(
        told[f"WEFT_BOOTSTRAP_TOKEN_{each}"] for each in ("ID", "HASH", "NODES")
    )
    assert first_key(admin) == told["WEFT_FIRST_KEY"]
    assert not [each for each in (secret, admin) if each in (mesh / "mesh.env").read_text()]
    password = (mesh / "postgres-password").read_text().strip()
    assert f"postgresql://weft:{password}@db.example.org:5433/weft\n" == (mesh / "postgres-url").read_text()


def test_founded_again_it_keeps_keys_and_what_was_said_and_renews_the_rest(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    found(str(mesh), "--gateway", "weft.example.org", "--nats", "n=n.example", "--nodes", "2")
    kept = ["join-token", "admin-key", "postgres-url", "mesh.env", "trust/authority.pem", "trust/operator.seed"]
    before = [(mesh / each).read_text() for each in kept]
    renewed = ["services/registry/nats.creds", "services/registry/certificate.pem", "nats/n/certificate.pem"]
    old = [(mesh / each).read_text() for each in renewed]
    said = json.loads(found(str(mesh), "--json"))
    assert before == [(mesh / each).read_text() for each in kept]
    assert not [each for each, text in zip(renewed, old, strict=True) if (mesh / each).read_text() == text]
    assert (["weft.example.org", "localhost", "127.0.0.1"], "tls://n.example:4222", 2) == (
        said["gateways"],
        said["nats"],
        said["nodes"],
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nats", "n1"], "'n1' names no server: want NAME=HOST"),
        (["--nats", "a=a", "--nats", "b=b"], "2 servers: want 1, or 3 or 5"),
        (["--gateway", "https://weft"], "'https://weft' is no name or address of a host"),
        (["--postgres", "a b"], "--postgres 'a b': want HOST or HOST:PORT"),
    ],
)
def test_what_cant_be_meant_is_wrong_usage_and_makes_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(Failure) as failure:
        found(str(tmp_path / "mesh"), *words)
    assert says in str(failure.value)
    assert Exit.USAGE == failure.value.exit
    assert not (tmp_path / "mesh").exists()


def test_for_kubernetes_each_part_is_a_secret_of_its_own_and_what_is_no_secret_a_config_map(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    items = {each["metadata"]["name"]: each for each in json.loads(found(str(mesh), "--kubernetes"))["items"]}
    held = {name: each["data"] for name, each in items.items() if "Secret" == each["kind"]}
    keys = {"authority.pem", "certificate.pem", "key.pem"}
    assert {*keys, "nats.creds"} == held["gateway"].keys()
    assert {*keys, "nats.conf"} == held["nats-2"].keys()
    assert {each.name for each in (mesh / "trust").iterdir()} == held["trust"].keys()
    assert {*catalogue.SERVICES, "nats-0", "nats-1", "nats-2", "trust", "join-token", "postgres-url"} == held.keys() - {
        "postgres-password"
    }
    token = base64.b64decode(held["join-token"]["join-token"])
    assert (mesh / "join-token").read_bytes().strip() == token
    said = items["mesh"]["data"]
    assert settings(mesh) == {name: text for name, text in said.items() if "WEFT_NATS_URL" != name}
    assert "tls://nats-0.nats:4222,tls://nats-1.nats:4222,tls://nats-2.nats:4222" == said["WEFT_NATS_URL"]
    assert (mesh / "trust/authority.pem").read_text() == items["authority"]["data"]["ca.crt"]
    assert "0.0.0.0:8222" == json.loads((mesh / "nats/nats-1/nats.conf").read_text())["http"]


def test_printed_again_for_kubernetes_the_folder_is_the_same_mesh_with_new_certificates(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh"
    one, other = (
        {
            each["metadata"]["name"]: each["data"]
            for each in json.loads(found(str(mesh), "--kubernetes", *words))["items"]
        }
        for words in (["--nats", "nats-0=nats-0.nats"], [])
    )
    same = [name for name in one if one[name] == other[name]]
    assert {"mesh", "authority", "trust", "join-token", "postgres-url", "postgres-password"} == set(same)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nats", "n=n.example"], "in Kubernetes the servers are nats-0=nats-0.nats and so on, not n=n.example:4222"),
        (["--nats", "nats-0=nats-0.nats"], "on loopback alone, where no probe reaches it: say --monitor 0.0.0.0"),
    ],
)
def test_a_folder_that_was_founded_for_elsewhere_says_what_kubernetes_lacks(
    tmp_path: Path, words: list[str], says: str
) -> None:
    found(str(tmp_path / "mesh"), *words)
    with pytest.raises(Failure) as failure:
        found(str(tmp_path / "mesh"), "--kubernetes")
    assert says in str(failure.value)


def test_secrets_are_printed_to_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    said = command.Said((), (), None, None, None)
    with pytest.raises(Failure, match=r"\| kubectl apply --server-side"):
        command.run(tmp_path / "mesh", said, kubernetes=True, as_json=False)
    assert not (tmp_path / "mesh").exists()
