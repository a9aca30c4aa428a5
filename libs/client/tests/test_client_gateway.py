"""The gateway's client, against a small HTTP server that answers what a test says."""

from typing import Any

import pytest
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway, Refused, Unreachable
from weft_servers.port import choose
from weft_testing.fake_gateway import FakeGateway


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"detail": "there is no model x"}, "there is no model x"),
        ({"error": {"message": "messages is empty"}}, "messages is empty"),
        ({"title": "Not Found"}, "Not Found"),
        (b"plain words", "plain words"),
        (b"", "the gateway answered with status 422 and no reason"),
    ],
)
def test_every_form_of_an_error_becomes_its_sentence(fake: FakeGateway, body: Any, sentence: str) -> None:
    fake.answers["GET", "/x"] = (422, body)
    with pytest.raises(Refused) as refused:
        Gateway(fake.url).get("/x")
    assert (422, sentence) == (refused.value.status, str(refused.value))


def test_a_gateway_that_isnt_there_is_named_with_what_to_do() -> None:
    port = choose()[0]
    with pytest.raises(Unreachable, match=f"nothing answers at http://127.0.0.1:{port}.*weft up"):
        Gateway(f"http://127.0.0.1:{port}").get("/x")


@pytest.mark.parametrize("url", ["ftp://somewhere", "", "host:port", "http://host:99999", "http://[::1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Failure, match="no address of a gateway") as refused:
        Gateway(url)
    assert Exit.USAGE == refused.value.exit


def test_server_sent_events_come_one_by_one(fake: FakeGateway) -> None:
    fake.answers["GET", "/s"] = (200, b": hello\n\nevent: error\ndata: {\ndata: }\n\ndata: [DONE]\n\n")
    assert [("error", "{\n}"), ("message", "[DONE]")] == list(Gateway(fake.url).stream("GET", "/s"))


def test_the_key_and_the_idempotency_key_are_sent(fake: FakeGateway) -> None:
    fake.answers["POST", "/p"] = (200, {"ok": True})
    assert {"ok": True} == Gateway(fake.url, key="secret").post("/p", {}, idempotency_key="once")
    headers = fake.headers[0]
    assert ("Bearer secret", "once") == (headers["Authorization"], headers["Idempotency-Key"])


def test_a_list_in_pages_is_had_whole(fake: FakeGateway) -> None:
    fake.answers["GET", "/api/tokens?limit=1000"] = (200, {"items": [{"id": "t-1"}], "next": "t-1"})
    fake.answers["GET", "/api/tokens?limit=1000&after=t-1"] = (200, {"items": [{"id": "t-2"}], "next": None})
    assert ["t-1", "t-2"] == [each["id"] for each in Gateway(fake.url).every("/api/tokens")]
