"""What is handed to whom, and with which settings there is nobody."""

import base64
import json
from pathlib import Path

import pytest
from weft_contracts.facts.fact import Unknown, Unreadable
from weft_observer import Happened, Observer, ObserverSettings
from weft_observer.happened import BadPattern
from weft_observer.webhook.settings import WebhookSettings
from weft_runtime.settings import BadSetting

from .given import FAILED, HEALTHY, commit


async def test_each_fact_goes_in_order_to_who_asked_for_it_and_no_other() -> None:
    observer = Observer(ObserverSettings(observe="node.*"))
    told: list[tuple[str, str, int]] = []

    @observer.on("run.failed", "node.healthy")
    async def all_(happened: Happened) -> None:
        told.append(("all", happened.name, happened.index))

    @observer.on()
    async def as_set(happened: Happened) -> None:
        told.append(("as set", happened.name, happened.index))

    await observer.handle(commit(HEALTHY, HEALTHY))
    await observer.handle(commit(FAILED))
    assert [
        ("all", "node.healthy", 0),
        ("as set", "node.healthy", 0),
        ("all", "node.healthy", 1),
        ("as set", "node.healthy", 1),
        ("all", "run.failed", 0),
    ] == told


async def test_what_a_newer_mesh_says_is_passed_over_and_the_rest_of_its_commit_is_not() -> None:
    observer, told = Observer(ObserverSettings()), list[str]()

    @observer.on("*")
    async def all_(happened: Happened) -> None:
        told.append(happened.name)

    unknown = Unknown(type="teleported", v=1, skippable=False)
    await observer.handle(commit(HEALTHY, unknown, Unreadable(why="x"), HEALTHY))
    assert ["node.healthy", "node.healthy"] == told


def test_a_handler_for_what_never_happens_is_refused() -> None:
    with pytest.raises(BadPattern):
        Observer(ObserverSettings()).on("node.exploded")


def test_the_name_is_that_of_the_credential(tmp_path: Path) -> None:
    def written(name: str) -> ObserverSettings:
        body = base64.urlsafe_b64encode(json.dumps({"name": name}).encode()).decode().rstrip("=")
        seed = "SUAAOHWIK4MWFY4CHEDCPBSXF5CI2SVC6ABPR2RQG2RXN24LU6FX5GYHKE"
        file = tmp_path / "x.creds"
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\nx.{body}.x\n------END\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END\n"
        )
        return ObserverSettings(nats_credentials=file)

    assert "press" == written("press").credential()[0]
    for settings in (ObserverSettings(), ObserverSettings(nats_credentials=tmp_path / "none"), written("a name")):
        with pytest.raises(BadSetting):
            settings.credential()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("observe", "run.failed,run.exploded", "WEFT_OBSERVE: no fact is called 'run.exploded'"),
        ("give_up_after", "0", "WEFT_GIVE_UP_AFTER: "),
        ("webhook_url", "http://example.com/x", "WEFT_WEBHOOK_URL: use https"),
        ("webhook_url", "ftp://example.com/x", "WEFT_WEBHOOK_URL: "),
        ("webhook_timeout", "1000", "WEFT_WEBHOOK_TIMEOUT: "),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    setting: str, value: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    right = {"webhook_url": "https://example.com/x", "webhook_secret_file": tmp_path / "secret"}
    with pytest.raises(SystemExit) as ended:
        WebhookSettings(**(right | {setting: value}))  # pyright: ignore[reportArgumentType]
    [sentence] = capsys.readouterr().err.splitlines()
    assert (2, True) == (ended.value.code, said in sentence)


def test_without_a_secret_that_signs_nothing_is_posted(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    settings = WebhookSettings(webhook_url="http://127.0.0.1:1/x", webhook_secret_file=file, webhook_authority=file)
    for written in (None, "hunter2"):
        if written is not None:
            file.write_text(written)
        with pytest.raises(BadSetting, match="WEFT_WEBHOOK_SECRET_FILE") as refused:
            settings.signer()
        assert "hunter2" not in str(refused.value)
    with pytest.raises(BadSetting, match="WEFT_WEBHOOK_AUTHORITY"):
        settings.verify()
