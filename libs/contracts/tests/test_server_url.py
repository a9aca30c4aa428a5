"""Where a server may be that an engine asks."""

import pytest
from weft_contracts.engines.server_url import fault_of_address, fault_of_url


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.5:11434/v1",
        "https://api.example.com/v1",
        "http://localhost:8080/v1/",
        "http://[::1]:8000/v1",
        "http://[fd12::7]/openai/v1",
        "http://model_server.example",
    ],
)
def test_a_server_may_be_at_any_host_of_ones_own_or_elsewhere(url: str) -> None:
    assert fault_of_url(url) is None


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("ftp://host/v1", "want http://HOST"),
        ("host:8000/v1", "want http://HOST"),
        ("http:///v1", "want http://HOST"),
        ("http://me:pass@host/v1", "holds a user or a password"),
        ("http://me@host/v1", "holds a user or a password"),
        ("http://host/v1?key=1", "holds a query"),
        ("http://host/v1#m", "holds a query or a fragment"),
        ("http://host:99999/v1", "is no URL"),
        ("http://host:0/v1", "names port 0"),
        ("http://[::1/v1", "is no URL"),
        ("http://ho st/v1", "without spaces"),
        ("http://höst/v1", "printable ASCII"),
        ("http://host/" + "x" * 3000, "at most 2048"),
        ("http://-host/v1", "names the host '-host'"),
        ("http://169.254.169.254/latest", "169.254.169.254 is a link-local address"),
        ("http://[fe80::1]/v1", "fe80::1 is a link-local address"),
        ("http://[::ffff:169.254.1.1]/v1", "is a link-local address"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_in_one_sentence(url: str, fault: str) -> None:
    said = fault_of_url(url)
    assert said is not None
    assert fault in said


@pytest.mark.parametrize(
    "address",
    [
        "169.254.0.1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
        "100.100.100.200",
        "fd00:ec2::254",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
    ],
)
def test_an_address_that_nobody_may_be_asked_at_is_known_in_all_its_forms(address: str) -> None:
    assert fault_of_address(address) is not None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.0.0.5", "192.168.1.9", "fd12::7", "8.8.8.8", "2001:db8::1"]
)
def test_any_other_address_may_be_asked(address: str) -> None:
    assert fault_of_address(address) is None
