"""What an operator's NATS servers are told: each can be started in its folder, and knows the others."""

import json

import pytest
from weft_identity.operator_mode import OperatorMode
from weft_servers.cluster_conf import BadMember, Member, Place, parse_member, render

OPERATOR = OperatorMode("operator", "ASYS", {"AMESH": "token"})


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("n1=10.0.0.5", Member("n1", "10.0.0.5")),
        ("n1=nats.example:4000", Member("n1", "nats.example", 4000)),
        ("n1=[fd00::5]:4000:6000:8000", Member("n1", "fd00::5", 4000, 6000, 8000)),
    ],
)
def test_a_server_is_named_with_its_address_and_ports(text: str, member: Member) -> None:
    assert member == parse_member(text)


@pytest.mark.parametrize("text", ["n1", "=10.0.0.5", "n1=", "n1=a b", "n1=a:0", "n1=a:70000", "n1=a:6222", "n1=a:1:1"])
def test_what_names_no_server_is_said(text: str) -> None:
    with pytest.raises(BadMember, match=r"names no server: want NAME=HOST"):
        parse_member(text)


def test_a_server_flushes_before_it_acknowledges_and_speaks_tls_to_all() -> None:
    members = [Member(f"n{number}", f"10.0.0.{number}") for number in (1, 2, 3)]
    conf = json.loads(render(members[0], members, OPERATOR, "secret"))
    assert "always" == conf["jetstream"]["sync_interval"]
    assert ("10.0.0.1:4222", False) == (conf["listen"], conf["allow_non_tls"])
    assert "127.0.0.1:8222" == conf["http"]
    assert ["nats://route:secret@10.0.0.2:6222", "nats://route:secret@10.0.0.3:6222"] == conf["cluster"]["routes"]
    assert ({"user": "route", "password": "secret", "timeout": 5}, True) == (
        conf["cluster"]["authorization"],
        conf["cluster"]["tls"]["verify"],
    )
    assert {"AMESH": "token"} == conf["resolver_preload"]


def test_one_server_has_no_routes() -> None:
    one = Member("n1", "fd00::1")
    conf = json.loads(render(one, [one], OPERATOR, "secret"))
    assert "cluster" not in conf
    assert ("[fd00::1]:4222", "tls://[fd00::1]:4222") == (conf["listen"], one.url)


def test_a_server_takes_what_the_disk_had_free_at_its_start_unless_it_is_told_how_much() -> None:
    one = Member("n1", "10.0.0.1")
    assert "max_file_store" not in json.loads(render(one, [one], OPERATOR, "secret"))["jetstream"]
    told = json.loads(render(one, [one], OPERATOR, "secret", Place(store=1 << 50)))["jetstream"]
    assert 1 << 50 == told["max_file_store"]
