"""`weft rollback`, and what `weft deploy` says of rollouts and sizes: what each asks of the gateway, in what order."""

from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_testing.fake_gateway import FakeGateway

MODEL: dict[str, Any] = {
    "name": "m",
    "id": "m-1",
    "revision": 1,
    "digest": "d",
    "state": "ready",
    "reason": None,
    "wanted": 1,
    "ready": 1,
    "spec": {"engine": "simulated"},
}
STATUS: dict[str, Any] = {
    "nodes": [],
    "models": [MODEL],
    "replicas": [],
    "mesh": {"problems": [], "brake": None, "health": "ok"},
    "log": {"position": 0},
}


@pytest.fixture(autouse=True)
def _known(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    fake.answers["GET", "/api/status"] = (200, STATUS)
    fake.otherwise = (200, {"request": "q-1", "model": "m-1", "revision": "3", "to": "1"})


def weft(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


def changes(fake: FakeGateway) -> list[tuple[str, str, Any]]:
    return [asked for asked in fake.asked if asked[0] != "GET"]


def test_a_rollback_names_the_revision_and_says_which_it_is_now(fake: FakeGateway) -> None:
    done = weft("rollback m --to 1 --wait 0")

    assert [("POST", "/api/models/m/rollback", {"to": 1})] == changes(fake)
    assert "m is as in revision 1 again, which is revision 3 now\n" == done.output
    weft("rollback m --wait 0")
    assert {} == changes(fake)[-1][2]


def test_a_revision_that_there_is_not_is_refused_in_the_gateways_words(fake: FakeGateway) -> None:
    fake.otherwise = (404, {"detail": "m has no revision 7: it has 1 to 2"})

    done = weft("rollback m --to 7")

    assert done.exit_code
    assert "m has no revision 7: it has 1 to 2" in str(done.exception or done.output)


def test_what_a_rollout_may_do_is_said_before_there_is_something_to_roll_out(fake: FakeGateway) -> None:
    weft("deploy simulated --name m --wait 0 --max-surge 0 --max-unavailable 1 --progress 60")

    first, second = changes(fake)
    assert ("PATCH", "/api/scheduling/m") == first[:2]
    assert {"max_surge": 0, "max_unavailable": 1, "progress_s": 60.0} == first[2]
    assert ("POST", "/api/models") == second[:2]


def test_of_a_model_that_is_not_there_yet_it_is_said_after_it_is(fake: FakeGateway) -> None:
    weft("deploy simulated --name new --wait 0 --max-surge 2")

    assert [("POST", "/api/models"), ("PATCH", "/api/scheduling/new")] == [asked[:2] for asked in changes(fake)]


def test_rules_by_which_nothing_could_be_replaced_ask_for_nothing(fake: FakeGateway) -> None:
    done = weft("deploy simulated --name new --wait 0 --max-surge 0")

    assert isinstance(done.exception, Failure)
    assert Exit.USAGE == done.exception.exit
    assert [] == changes(fake)


def test_figures_of_its_own_go_with_a_model(fake: FakeGateway) -> None:
    weft("deploy simulated --name m --wait 0 --scaling up_after_s=10,spare=0.5 --progress 60")

    assert ("PATCH", "/api/scheduling/m") == changes(fake)[0][:2]
    assert {"progress_s": 60.0, "scaling": {"up_after_s": 10.0, "spare": 0.5}} == changes(fake)[0][2]


def test_figures_of_its_own_are_taken_away_again(fake: FakeGateway) -> None:
    weft("deploy simulated --name m --wait 0 --scaling none")

    assert {"scaling": {}} == changes(fake)[0][2]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("up=3", "--scaling up=3: 'up' is none of up_after_s, up_cooldown_s,"),
        ("", "--scaling : '' is none of"),
        ("spare=0.5,spare=0.6", "'spare' is there twice"),
        ("spare", "--scaling spare=: want a number"),
        ("spare=half", "--scaling spare=half: want a number"),
        ("spare=nan", "--scaling spare=nan: "),
        ("spare=2", "--scaling spare=2: want less than or equal to 0.95"),
        ("down_after_s=0", "--scaling down_after_s=0: want greater than or equal to 1"),
    ],
)
def test_a_figure_that_is_none_asks_for_nothing(fake: FakeGateway, typed: str, told: str) -> None:
    done = CliRunner().invoke(app, ["deploy", "simulated", "--name", "new", "--wait", "0", "--scaling", typed])

    assert isinstance(done.exception, Failure)
    assert Exit.USAGE == done.exception.exit
    assert told in str(done.exception)
    assert [] == changes(fake)
