"""The mesh's trust: founded once, kept to oneself, renewed with its revocations."""

from pathlib import Path

import pytest
from weft_identity.claims import read
from weft_identity.grants import Permissions, ServiceExport, StreamExport
from weft_identity.nkey import KeyPair, Role
from weft_identity.trust import Account, AccountExports, ExposedTrust, NoTrust, load, load_or_make

EXPORTS = AccountExports(
    workers=(ServiceExport("a.>"), ServiceExport("next", streamed=True)), observers=(StreamExport("a.>"),)
)


def test_the_trust_is_made_once_and_read_ever_after(tmp_path: Path):
    first = load_or_make(tmp_path / "trust", EXPORTS)

    assert first == load_or_make(tmp_path / "trust", EXPORTS) == load(tmp_path / "trust")
    assert {0o600} == {file.stat().st_mode & 0o777 for file in (tmp_path / "trust").iterdir()}
    assert (tmp_path / "trust").stat().st_mode & 0o777 == 0o700
    assert [each.name for each in tmp_path.iterdir()] == ["trust"]


def test_only_mesh_owns_jetstream_and_the_others_import_what_is_exported(tmp_path: Path):
    trust = load_or_make(tmp_path / "trust", EXPORTS)

    bodies = {each: read(trust.account_tokens[trust.public(each)]).body for each in Account}

    assert [each for each, body in bodies.items() if "disk_storage" in body["limits"]] == [Account.MESH]
    assert [each["subject"] for each in bodies[Account.MESH]["exports"]] == ["a.>", "next", "a.>"]
    assert [each["subject"] for each in bodies[Account.WORKERS]["imports"]] == ["a.>", "next"]
    assert [each["type"] for each in bodies[Account.OBSERVERS]["imports"]] == ["stream"]
    assert bodies[Account.SYS]["imports"] == []


def test_an_export_to_both_accounts_is_made_once_and_streamed_if_either_says_so(tmp_path: Path):
    exports = AccountExports(workers=(ServiceExport("x"),), observers=(ServiceExport("x", streamed=True),))

    trust = load_or_make(tmp_path / "trust", exports)

    exports = read(trust.account_tokens[trust.public(Account.MESH)]).body["exports"]
    assert [(each["subject"], each["response_type"]) for each in exports] == [("x", "Stream")]


def test_changed_exports_renew_the_tokens_and_keep_the_keys_and_the_revocations(tmp_path: Path):
    first = load_or_make(tmp_path / "trust", EXPORTS)
    workers, user = first.public(Account.WORKERS), KeyPair.new(Role.USER).public
    (tmp_path / "resolver").mkdir()
    pushed = first.with_revocations(Account.WORKERS, {user: 123})
    (tmp_path / "resolver" / f"{workers}.jwt").write_text(pushed)

    wider = AccountExports((*EXPORTS.workers, ServiceExport("b")), EXPORTS.observers, Permissions(("b",)))
    second = load_or_make(tmp_path / "trust", wider, resolver=tmp_path / "resolver")

    renewed = read(second.account_tokens[workers])
    assert first.accounts == second.accounts
    assert {user: 123} == renewed.revocations
    assert renewed.issued_at > read(pushed).issued_at
    assert "b" in [each["subject"] for each in renewed.body["imports"]]
    observers = first.public(Account.OBSERVERS)
    assert first.account_tokens[observers] == second.account_tokens[observers]
    assert second == load_or_make(tmp_path / "trust", wider, resolver=tmp_path / "resolver")


def test_revocations_of_tokens_that_have_expired_are_forgotten_with_the_next_one(tmp_path: Path):
    trust = load_or_make(tmp_path / "trust", EXPORTS)
    old, recent, new = (KeyPair.new(Role.USER).public for _ in range(3))

    before = trust.with_revocations(Account.WORKERS, {old: 100, recent: 200})
    after = trust.with_revocations(Account.WORKERS, {new: 300}, current=before, forget_before=150)

    assert {recent: 200, new: 300} == trust.revoked(Account.WORKERS, current=after)
    assert {old: 100, recent: 200} == trust.revoked(Account.WORKERS, current=before)


def test_a_founding_that_was_cut_off_leaves_nothing_that_counts(tmp_path: Path):
    (tmp_path / "trust.making").mkdir()
    (tmp_path / "trust.making" / "operator.seed").write_text("half")

    load_or_make(tmp_path / "trust", EXPORTS)

    assert [each.name for each in tmp_path.iterdir()] == ["trust"]


def test_a_damaged_or_missing_trust_says_so_and_is_never_made_anew(tmp_path: Path):
    with pytest.raises(NoTrust):
        load(tmp_path / "trust")
    load_or_make(tmp_path / "trust", EXPORTS)
    (tmp_path / "trust" / "mesh.seed").unlink()

    with pytest.raises(NoTrust, match="mesh"):
        load_or_make(tmp_path / "trust", EXPORTS)


def test_a_seed_that_everyone_can_read_is_refused(tmp_path: Path):
    load_or_make(tmp_path / "trust", EXPORTS)
    (tmp_path / "trust" / "operator.seed").chmod(0o644)

    with pytest.raises(ExposedTrust, match=r"operator\.seed"):
        load(tmp_path / "trust")


def test_printed_credentials_and_trust_show_no_seed(tmp_path: Path):
    trust = load_or_make(tmp_path / "trust", EXPORTS)
    credentials = trust.user(Account.MESH, "registry", Permissions())

    assert credentials.seed not in repr(credentials)
    assert trust.operator.seed not in repr(trust)
    assert credentials.seed in credentials.text()
