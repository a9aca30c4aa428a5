"""Signatures as receivers check them."""

import base64

import pytest
from weft_observer.webhook.signature import BadSecret, Signer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_post_is_signed_as_the_libraries_of_the_convention_sign_it() -> None:
    # their own example, which all of them test by
    made = Signer([SECRET]).headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    } == made


def test_while_a_secret_is_changed_both_sign() -> None:
    other = "whsec_" + base64.b64encode(bytes(32)).decode()
    both = Signer([SECRET, other]).headers("m", 1, b"")["webhook-signature"].split()
    assert both == [Signer([each]).headers("m", 1, b"")["webhook-signature"] for each in (SECRET, other)]


@pytest.mark.parametrize(
    "secrets",
    [
        [],
        ["hunter2"],
        ["whsec_???"],
        ["whsec_" + base64.b64encode(bytes(23)).decode()],
        ["whsec_" + "A" * 88],
        [SECRET] * 5,
    ],
    ids=["none", "without its mark", "no base64", "too short", "too long", "too many"],
)
def test_a_secret_that_is_none_is_refused_without_a_word_of_it(secrets: list[str]) -> None:
    with pytest.raises(BadSecret) as refused:
        Signer(secrets)
    assert "hunter2" not in str(refused.value)
