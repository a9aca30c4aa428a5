"""Tokens, minted and read back."""

import subprocess
import sys

import pytest
from weft_identity.claims import (
    BadToken,
    credentials_text,
    mint_account,
    mint_operator,
    mint_user,
    read,
    revoke,
)
from weft_identity.grants import (
    AccountPlan,
    Import,
    JetStreamLimits,
    Permissions,
    Responses,
    ScopedKey,
    ServiceExport,
    StreamExport,
)
from weft_identity.nkey import BadKey, KeyPair, Role

OPERATOR, ACCOUNT, SIGNING, USER = (
    KeyPair.new(each) for each in (Role.OPERATOR, Role.ACCOUNT, Role.ACCOUNT, Role.USER)
)


def test_a_user_token_says_whose_it_is_and_until_when():
    permissions = Permissions(("a.b",), ("c.>",), max_payload_bytes=7, allow_responses=Responses(2, 0.5))

    token = mint_user(USER.public, "n1", permissions, signer=SIGNING, account=ACCOUNT.public, expires_in_s=60, now=1000)
    claims = read(token, issuers=[SIGNING.public])

    assert (USER.public, SIGNING.public, "n1", "user") == (
        claims.subject,
        claims.issuer,
        claims.name,
        claims.kind,
    )
    assert (claims.issued_at, claims.expires_at) == (1000, 1060)
    assert (claims.body["pub"], claims.body["sub"]) == ({"allow": ["a.b"]}, {"allow": ["c.>"]})
    assert claims.body["resp"] == {"max": 2, "ttl": 500_000_000}
    assert (7, ACCOUNT.public) == (claims.body["payload"], claims.body["issuer_account"])


def test_an_empty_list_allows_nothing():
    claims = read(mint_user(USER.public, "n1", Permissions(), signer=ACCOUNT))

    assert (claims.body["pub"], claims.body["sub"]) == ({"deny": [">"]}, {"deny": [">"]})


def test_an_altered_or_strange_token_is_refused():
    token = mint_operator(OPERATOR, name="mesh", system_account=ACCOUNT.public)
    head, body, signature = token.split(".")
    other = mint_operator(KeyPair.new(Role.OPERATOR), name="mesh", system_account=ACCOUNT.public)

    for bad in ("", "a.b", "a.b.c", f"{head}.{other.split('.')[1]}.{signature}", f"{head}.{body}.AAAA"):
        with pytest.raises(BadToken):
            read(bad)
    with pytest.raises(BadToken, match="unknown issuer"):
        read(other, issuers=[OPERATOR.public])


def test_an_account_token_holds_its_plan():
    other = KeyPair.new(Role.ACCOUNT).public
    plan = AccountPlan(
        "MESH",
        exports=[ServiceExport("x.next", streamed=True), StreamExport("ev.>")],
        imports=[Import(ServiceExport("y.*", streamed=True), other)],
        signing_keys=[SIGNING.public, ScopedKey(other, "worker", Permissions(("p.{{name()}}",)))],
        jetstream=JetStreamLimits(disk_bytes=5),
    )

    body = read(mint_account(ACCOUNT.public, plan, operator=OPERATOR)).body

    assert body["exports"] == [
        {"name": "x.next", "subject": "x.next", "type": "service", "response_type": "Stream"},
        {"name": "ev.>", "subject": "ev.>", "type": "stream"},
    ]
    assert [{"name": "y.*", "subject": "y.*", "type": "service", "account": other}] == body["imports"]
    assert SIGNING.public == body["signing_keys"][0]
    assert body["signing_keys"][1]["template"]["pub"] == {"allow": ["p.{{name()}}"]}
    assert (body["limits"]["disk_storage"], body["limits"]["mem_storage"]) == (5, -1)


def test_revoking_adds_to_what_was_revoked_and_is_never_older():
    other = KeyPair.new(Role.USER).public
    first = mint_account(ACCOUNT.public, AccountPlan("W"), operator=OPERATOR, now=500)

    second = revoke(first, {USER.public: 400}, operator=OPERATOR, now=300)
    third = read(revoke(second, {other: 600}, operator=OPERATOR, now=700))

    assert read(second).issued_at == 500
    assert {USER.public: 400, other: 600} == third.revocations
    assert {**read(first).body, "revocations": third.revocations} == third.body
    with pytest.raises(BadToken):
        revoke(first, {}, operator=KeyPair.new(Role.OPERATOR))
    with pytest.raises(BadToken, match="not an account's"):
        revoke(mint_operator(OPERATOR, name="m", system_account=ACCOUNT.public), {}, operator=OPERATOR)


def test_keys_in_the_wrong_place_are_refused():
    with pytest.raises(BadKey):
        mint_user(ACCOUNT.public, "n1", Permissions(), signer=ACCOUNT)
    with pytest.raises(BadKey):
        mint_user(USER.public, "n1", Permissions(), signer=USER)
    with pytest.raises(BadKey):
        mint_account(ACCOUNT.public, AccountPlan("W"), operator=ACCOUNT)
    with pytest.raises(ValueError, match="expire"):
        mint_user(USER.public, "n1", Permissions(), signer=ACCOUNT, expires_in_s=0)


def test_a_credentials_file_holds_token_and_seed():
    text = credentials_text("TOKEN", USER.seed)

    assert ["TOKEN", USER.seed] == [line for line in text.splitlines() if line and not line.startswith("-")]


def test_minting_imports_no_server_and_no_process_code():
    check = "import sys, weft_identity.claims; print(*(m for m in sys.modules if m.startswith('weft_')))"

    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60).stdout

    names = ("weft_identity", "weft_identity.claims", "weft_identity.grants", "weft_identity.nkey")
    assert sorted(loaded.split()) == list(names)
