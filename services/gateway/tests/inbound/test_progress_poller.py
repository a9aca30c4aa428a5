"""Of what nodes say of themselves only that is taken which can be read, is bounded, and comes from a known node."""

from typing import Any, cast

import pytest
from weft_contracts.facts.node import Joined
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.signals import PROGRESS_BYTES, InstallSaid, NodeProgress
from weft_contracts.subjects import node, node_signal
from weft_eventlog import LastValue
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.inbound.progress_poller import progress_poller
from weft_gateway.projections.directory import Directory
from weft_runtime.signal_poller import SignalPoller
from weft_testing import HandLog

ONE, TWO, STRANGER = NodeId("n-1"), NodeId("n-2"), NodeId("n-3")
INSTALL = InstallSaid(engine="e", version="1", vendor="cpu", phase="fetching", package="torch", fetched=1, total=2)
Poller = SignalPoller[NodeProgress]
GOOD = NodeProgress(node=ONE, installs=(INSTALL,))


class NoRuntime:
    """Nothing is read from it here."""

    def signals(self, *_: str) -> None:
        return None


@pytest.fixture
def board() -> ProgressBoard:
    return ProgressBoard()


@pytest.fixture
def poller(board: ProgressBoard) -> Poller:
    """Of a gateway that knows two nodes."""
    directory, log = Directory(), HandLog()
    addresses = Addresses(host="127.0.0.1", http_port=1)
    for id in (ONE, TWO):
        joined = Joined(name=id, public_key="U", token=TokenId("t"), addresses=addresses)
        directory.fold([log.given(node(id), joined)])
    return progress_poller(cast(Any, NoRuntime()), directory, board)


def said(by: NodeId, text: str) -> LastValue:
    return LastValue(node_signal(by, "progress"), text.encode())


def test_what_a_node_says_is_its_own_whatever_name_it_gives(poller: Poller, board: ProgressBoard) -> None:
    poller.take([said(TWO, GOOD.model_dump_json())], 1.0)
    assert [TWO] == board.nodes()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"node":"n-1","installs":7}',
        GOOD.model_dump_json().replace('"torch"', '"<img src=x>"'),
        GOOD.model_dump_json().replace('"torch"', '"a\\u001bb"'),
        GOOD.model_dump_json().replace('"fetched":1', '"fetched":-1'),
        GOOD.model_dump_json().replace('"fetched":1', '"fetched":1e300'),
        GOOD.model_dump_json().replace('"fetching"', '"stealing"'),
        GOOD.model_copy(update={"installs": (INSTALL,) * 33}).model_dump_json(),
        GOOD.model_dump_json() + " " * PROGRESS_BYTES,
    ],
)
def test_what_can_not_be_read_is_passed_over(poller: Poller, board: ProgressBoard, text: str) -> None:
    assert text != GOOD.model_dump_json()
    poller.take([said(ONE, text), said(TWO, GOOD.model_dump_json())], 1.0)
    assert [TWO] == board.nodes()


def test_nobody_listens_to_a_node_that_is_not_known(poller: Poller, board: ProgressBoard) -> None:
    poller.take([said(STRANGER, GOOD.model_dump_json()), LastValue("weft.sig.other", b"{}")], 1.0)
    assert [] == board.nodes()
