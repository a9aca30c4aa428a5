"""Where small files of models are asked for, and what is said when nobody gives one."""

from weft_contracts.ids import NodeId
from weft_files.faults import NotFetched
from weft_sources.card_addresses import at_node, at_source, why_away
from weft_sources.settings import SourceSettings


def test_a_node_is_asked_at_its_own_address_and_must_show_its_own_certificate() -> None:
    plain = at_node(NodeId("n-1"), "a", "10.0.0.1", 80, "/metadata/m-1/t.json", secure=False)
    tls = at_node(NodeId("n-1"), "a", "fd00::1", 81, "/x?y=z", secure=True)
    assert ("http://10.0.0.1:80/metadata/m-1/t.json", "node a") == (plain.url, plain.said)
    assert ("https://[fd00::1]:81/x?y=z", "node a") == (tls.url, tls.said)
    assert plain.node == tls.node != at_node(NodeId("n-2"), "a", "h", 1, "/", secure=True).node


def test_a_source_that_is_not_asked_says_why_and_the_others_are() -> None:
    keys = ("/disk/t.json", f"hf:o/m@{'c' * 40}#t.json", "s3://bucket/m//t.json")
    found = at_source(keys, 10, SourceSettings(s3_access_key="k", s3_secret_key="s"))
    assert [f"https://huggingface.co/o/m/resolve/{'c' * 40}/t.json"] == [each.url for each in found.addresses]
    assert 1 == len(found.refused)

    said = why_away("t.json of m", NotFetched("x", [("o/m/t.json", "answers 503")]), found.refused, "this gateway")
    assert f"t.json of m can't be had: o/m/t.json answers 503; {found.refused[0]}" == said


def test_where_nobody_could_be_asked_what_the_resolver_said_stands() -> None:
    assert "t.json can't be had: it has no address" == why_away("t.json", NotFetched("it has no address"), (), "we")
