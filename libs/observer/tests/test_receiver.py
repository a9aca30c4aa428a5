"""What a receiver answers, and what becomes of the fact."""

import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from weft_identity import authority
from weft_observer import Later, Refused
from weft_observer.webhook.receiver import Receiver
from weft_observer.webhook.settings import WebhookSettings
from weft_testing.hook_server import HookServer

from .given import happened

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TRIED_AGAIN = (301, 302, 307, 401, 403, 404, 408, 425, 429, 500, 502, 503, 504)
DEAD = (400, 405, 409, 410, 413, 415, 422)


@pytest.fixture
def hook() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    return file


@pytest.fixture
async def receiver(hook: HookServer, secret: Path) -> AsyncIterator[Receiver]:
    made = Receiver(WebhookSettings(webhook_url=hook.url, webhook_secret_file=secret, webhook_timeout=30))
    yield made
    await made.close()


async def test_a_fact_is_posted_with_its_signature_and_nothing_of_the_environment(
    hook: HookServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await receiver.post(happened())
    [post] = hook.posts
    assert ("/hook", "application/json", happened().id) == (
        post.path,
        post.headers["content-type"],
        post.headers["webhook-id"],
    )
    assert abs(int(post.headers["webhook-timestamp"]) - time.time()) < 600
    assert post.headers["webhook-signature"].startswith("v1,")
    said = json.loads(post.body)
    assert ("run.failed", "2023-11-14T22:13:20.250+00:00", happened().document()) == (
        said["type"],
        said["timestamp"],
        said["data"],
    )


@pytest.mark.parametrize("status", [*TRIED_AGAIN, *DEAD])
async def test_an_answer_says_whether_the_fact_is_tried_again(
    hook: HookServer, receiver: Receiver, status: int
) -> None:
    hook.answer = lambda body: status
    hook.more = {"location": hook.url, "retry-after": "7"}
    with pytest.raises(Refused if status in DEAD else Later, match=f"127.0.0.1 answers {status}") as said:
        await receiver.post(happened())
    assert 1 == len(hook.posts)  # no redirect was followed
    if isinstance(said.value, Later) and status >= 400:
        assert 7 == said.value.after_s


async def test_who_does_not_answer_or_is_not_there_is_tried_again(hook: HookServer, secret: Path) -> None:
    def slowly(body: bytes) -> int:
        time.sleep(0.5)
        return 204

    hook.answer = slowly
    slow = Receiver(WebhookSettings(webhook_url=hook.url, webhook_secret_file=secret, webhook_timeout=0.1))
    with pytest.raises(Later, match=r"does not answer within 0.1 s"):
        await slow.post(happened())
    await slow.close()
    nobody = Receiver(WebhookSettings(webhook_url="http://127.0.0.1:1/private-path", webhook_secret_file=secret))
    with pytest.raises(Later, match="can't be reached") as said:
        await nobody.post(happened())
    assert "private-path" not in str(said.value)
    await nobody.close()


async def test_a_receiver_that_nobody_vouches_for_gets_nothing(secret: Path, tmp_path: Path) -> None:
    (tmp_path / "authority").mkdir()
    made = authority.load_or_make(tmp_path / "authority")
    made.lay_out(tmp_path / "tls", "gateway", ["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls/certificate.pem", tmp_path / "tls/key.pem")
    vouched = tmp_path / "authority.pem"
    vouched.write_text(made.pem)
    with HookServer(tls) as hook:
        stranger = Receiver(WebhookSettings(webhook_url=hook.url, webhook_secret_file=secret))
        with pytest.raises(Later, match="can't be reached"):
            await stranger.post(happened())
        await stranger.close()
        assert [] == hook.posts
        known = Receiver(WebhookSettings(webhook_url=hook.url, webhook_secret_file=secret, webhook_authority=vouched))
        await known.post(happened())
        await known.close()
        assert 1 == len(hook.posts)
