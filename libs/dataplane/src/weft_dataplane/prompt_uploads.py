"""Prompts that are too large for a frame: put beside the stream first, then submitted by their handle."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import FrameTooLarge, SessionBusy, SessionError
from weft_dataplane.limits import MAX_VALUE_BYTES
from weft_dataplane.outbox import Outbox
from weft_dataplane.value_client import prompt_bytes, put_value

MAX_UPLOADS: Final = 16
UPLOAD_S: Final = 60.0

log = logging.getLogger("weft.dataplane")


class PromptUploads:
    """A session's large prompts on their way. What goes wrong with one becomes its request's last output."""

    def __init__(
        self, stub: "pb_grpc.EngineAsyncStub", outbox: Outbox, target: str, deliver: Callable[[pb.Output], None]
    ) -> None:
        self._stub = stub
        self._outbox = outbox
        self._target = target
        self._deliver = deliver
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """One for each prompt that is on its way."""
        return list(self._tasks.values())

    def begin(self, submit: pb.Submit, size: int) -> None:
        """Put the prompt of a request of `size` bytes, then submit it. Raises FrameTooLarge, SessionBusy."""
        if size > MAX_VALUE_BYTES:
            raise FrameTooLarge(f"a request of {size} bytes exceeds the bound of {MAX_VALUE_BYTES} bytes")
        if len(self._tasks) >= MAX_UPLOADS:
            raise SessionBusy(f"{MAX_UPLOADS} large prompts are already on their way to this replica")
        request = submit.request
        self._tasks[request] = asyncio.create_task(self._put_and_submit(submit), name=f"upload-{request}")

    def cancel(self, request: int) -> bool:
        """Stop a request's upload; whether there was one."""
        task = self._tasks.pop(request, None)
        if task is not None:
            task.cancel()
        return task is not None

    async def _put_and_submit(self, submit: pb.Submit) -> None:
        request = submit.request
        try:
            handle = await put_value(self._stub, prompt_bytes(submit), UPLOAD_S)
            small = pb.Submit()
            small.CopyFrom(submit)
            small.handle = handle
            self._outbox.put(pb.ClientFrame(submit=small))
        except FrameTooLarge as error:
            self._deliver(failed_output(request, pb.FAULT_BAD_REQUEST, str(error)))
        except SessionBusy as error:
            self._deliver(failed_output(request, pb.FAULT_BUSY, str(error)))
        except SessionError as error:
            self._deliver(failed_output(request, pb.FAULT_ENGINE, str(error)))
        except Exception as error:
            log.exception("upload failed", extra={"request": request, "target": self._target})
            self._deliver(failed_output(request, pb.FAULT_ENGINE, f"the prompt could not be sent: {error}"))
        finally:
            self._tasks.pop(request, None)


def failed_output(request: int, fault: pb.Fault.ValueType, error: str) -> pb.Output:
    """The last output of a request that failed."""
    return pb.Output(request=request, finish=pb.FINISH_ERROR, fault=fault, error=error)
