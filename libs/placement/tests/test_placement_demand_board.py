"""What gateways said last, added over those that live."""

from weft_contracts.facts.sizing import MOST_GATEWAYS
from weft_contracts.ids import ModelId
from weft_contracts.signals import GatewayDemand, ModelDemand
from weft_placement.demand_board import DemandBoard

MODEL = ModelId("m-a")


def said(**demand: float) -> GatewayDemand:
    return GatewayDemand(models=(ModelDemand.model_validate({"model": MODEL, **demand}),))


def known(board: DemandBoard, now: float) -> bool:
    return board.known(now) and not board.left_out(MODEL)


def test_no_gateway_is_unknown_and_one_that_has_nothing_to_tell_is_known() -> None:
    board = DemandBoard()
    assert not known(board, 10.0)
    board.heard("g", GatewayDemand(), 10.0)
    assert known(board, 10.0)


def test_figures_are_those_of_each_gateway_with_their_age() -> None:
    board = DemandBoard()
    board.heard("h", said(running=2, waiting=1), 10.0)
    board.heard("g", said(running=1, loading=4), 11.5)
    first, second = board.readings(MODEL, 12.0)
    assert ("g", 0.5, 1, 0, 4) == (first.gateway, first.age_s, first.running, first.waiting, first.loading)
    assert ("h", 2.0, 2, 1, 0) == (second.gateway, second.age_s, second.running, second.waiting, second.loading)


def test_a_signal_older_than_five_seconds_is_unknown_and_after_a_minute_its_gateway_is_no_more() -> None:
    board = DemandBoard()
    board.heard("g", said(running=2), 0.0)
    board.heard("h", said(), 58.0)
    board.look(5.0)
    assert board.readings(MODEL, 5.0)[0].known
    assert not board.readings(MODEL, 5.2)[0].known
    board.look(60.0)
    assert not known(board, 60.0)
    board.look(60.1)
    assert ["h"] == [each.gateway for each in board.readings(MODEL, 60.1)]
    assert known(board, 60.1)


def test_who_leaves_is_gone_at_once_and_what_it_used_last_is_remembered() -> None:
    board = DemandBoard()
    board.heard("g", said(idle_s=3.0), 10.0)
    board.heard("g", GatewayDemand(leaving=True), 11.0)
    assert 0 == board.gateways
    assert {MODEL: 7.0} == board.last_used


def test_more_gateways_than_are_listened_to_make_all_unknown_until_one_is_gone() -> None:
    board = DemandBoard()
    for number in range(MOST_GATEWAYS + 1):
        board.heard(f"g{number}", said(), 10.0)
    assert MOST_GATEWAYS == board.gateways
    assert not known(board, 10.0)
    for number in range(1, MOST_GATEWAYS):
        board.heard(f"g{number}", said(), 71.0)
    board.look(71.0)
    assert known(board, 71.0)


def test_of_models_that_are_gone_nothing_is_kept() -> None:
    board = DemandBoard()
    board.heard("g", said(), 10.0)
    board.heard("g", said(tokens=5), 11.0)
    assert {MODEL: 5} == board.made
    board.forget_models(but={})
    assert ({}, {}) == (board.last_used, board.made)


def test_tokens_count_from_where_each_gateway_was_heard_first_and_anew_when_it_began_anew() -> None:
    board = DemandBoard()
    for gateway, tokens in (("g", 100), ("h", 7), ("g", 130), ("h", 9), ("g", 10), ("g", 15)):
        board.heard(gateway, said(tokens=tokens), 10.0)
    assert {MODEL: 30 + 2 + 5} == board.made
    board.heard("g", GatewayDemand(leaving=True), 11.0)
    board.heard("g", said(tokens=900), 12.0)
    assert {MODEL: 37} == board.made


def test_a_models_use_is_the_latest_at_any_gateway_and_no_longer_ago_than_anybody_listened() -> None:
    board = DemandBoard()
    assert not board.use(MODEL, 0.0).known
    board.heard("g", said(idle_s=500.0), 100.0)
    assert (True, 2.0) == (board.use(MODEL, 102.0).known, board.use(MODEL, 102.0).idle_s)
    for second in range(101, 201):
        board.heard("g", said(idle_s=400.0 + second), float(second))
        board.heard("h", said(idle_s=float(second - 150)) if second > 150 else said(running=1), float(second))
    use = board.use(MODEL, 200.5)
    assert (True, 50.5, ["g", "h"]) == (use.known, use.idle_s, [each.gateway for each in use.gateways])


def test_what_runs_or_waits_or_is_unknown_is_never_idle() -> None:
    board = DemandBoard()
    board.heard("g", said(), 0.0)
    for told in (said(running=1), said(waiting=1), said(loading=1)):
        board.heard("g", told, 100.0)
        assert (True, 0.0) == (board.use(MODEL, 100.0).known, board.use(MODEL, 100.0).idle_s)
    board.heard("g", said(idle_s=50), 200.0)
    assert 50 <= board.use(MODEL, 205.0).idle_s
    assert (False, 0.0) == (board.use(MODEL, 205.1).known, board.use(MODEL, 205.1).idle_s)
    board.heard("g", GatewayDemand(left_out=3), 206.0)
    assert (False, 0.0) == (board.use(MODEL, 206.0).known, board.use(MODEL, 206.0).idle_s)
