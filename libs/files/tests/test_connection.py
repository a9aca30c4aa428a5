"""What a transfer has open when it is cancelled."""

import socket

import pytest
from weft_files.connection import Sockets
from weft_files.faults import Stopped


def test_a_connection_that_is_made_while_its_transfer_is_cancelled_is_closed() -> None:
    sockets = Sockets()
    here, there = socket.socketpair()
    sockets.stop()
    with there:
        with pytest.raises(Stopped):
            sockets.add(here)
        assert -1 == here.fileno()
