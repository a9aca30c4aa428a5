"""What nodes say of their installs, loads and memory, of those that are known."""

from weft_contracts.ids import NodeId
from weft_contracts.signals import NodeProgress
from weft_runtime.service import Runtime
from weft_runtime.signal_poller import PROGRESS, SignalPoller

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.projections.directory import Directory


def progress_poller(runtime: Runtime, directory: Directory, board: ProgressBoard) -> SignalPoller[NodeProgress]:
    """Puts on the board what nodes of the fleet say."""

    def heard(whose: str, said: NodeProgress, now: float) -> None:
        node = directory.fleet.nodes.get(NodeId(whose))
        if node is not None and not node.removed:
            board.heard(node.id, said, now)

    return SignalPoller(runtime, PROGRESS, heard, board.forget_old)
