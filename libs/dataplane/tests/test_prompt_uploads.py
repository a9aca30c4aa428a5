"""What becomes of a request whose prompt is too large for a frame and can't be put."""

import asyncio
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import prompt_uploads
from weft_dataplane.client_errors import FrameTooLarge, SessionBusy, SessionError, SessionLost
from weft_dataplane.prompt_uploads import PromptUploads


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (SessionBusy("the replica has no room for large values"), pb.FAULT_BUSY),
        (SessionLost("the value could not be put"), pb.FAULT_ENGINE),
        (FrameTooLarge("the value exceeds the bound"), pb.FAULT_BAD_REQUEST),
    ],
    ids=["no room", "lost", "too large"],
)
async def test_a_prompt_that_could_not_be_put_says_whether_waiting_helps(
    monkeypatch: pytest.MonkeyPatch, error: SessionError, fault: pb.Fault.ValueType
) -> None:
    async def fails(stub: Any, data: bytes, timeout: float) -> str:
        raise error

    monkeypatch.setattr(prompt_uploads, "put_value", fails)
    ends: asyncio.Queue[pb.Output] = asyncio.Queue()
    stub: Any = None
    outbox: Any = None
    uploads = PromptUploads(stub, outbox, "127.0.0.1:1", ends.put_nowait)

    uploads.begin(pb.Submit(request=7, text="x"), 1)
    last = await asyncio.wait_for(ends.get(), 30)

    assert (7, pb.FINISH_ERROR, fault, str(error)) == (last.request, last.finish, last.fault, last.error)
