"""The quick reading of headers says what the client's own says."""

from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client
from weft_eventlog.quick_headers import parse

names = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1)
values = st.text(st.characters(codec="utf-8", exclude_characters="\r\n", exclude_categories=("Cs", "Cc")))


@given(st.dictionaries(names, values, max_size=8))
@example({"Nats-Msg-Id": "a", "traceparent": "00-x:y"})
def test_what_we_write_is_read_as_the_client_reads_it(headers: dict[str, str]) -> None:
    raw = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n"
    assert Client._parse_header_lines(raw) == parse(raw)


def test_lines_that_are_no_headers_are_passed_over() -> None:
    raw = b"no colon\r\nbad name: x\r\nGood:\tvalue \r\n\r\n"
    assert {"Good": "value"} == parse(raw) == Client._parse_header_lines(raw)
