"""What a gateway's session still has to send: bounded frames, and cancels that are never refused."""

import asyncio
from collections import deque
from typing import Final

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.client_errors import FrameTooLarge, SessionBusy
from weft_dataplane.limits import MAX_FRAME_BYTES

MAX_FRAMES: Final = 4096
MAX_BYTES: Final = 32 * 1024 * 1024


class Outbox:
    """Frames in order; one writer takes them. Cancels overtake, because they carry nothing but a number."""

    def __init__(self) -> None:
        self._frames: deque[tuple[pb.ClientFrame, int]] = deque()
        self._bytes = 0
        self._cancels: dict[int, None] = {}
        self._ready = asyncio.Event()

    def put(self, frame: pb.ClientFrame) -> None:
        """Queue a frame. Raises FrameTooLarge, or SessionBusy when the bound is reached."""
        size = frame.ByteSize()
        if size > MAX_FRAME_BYTES:
            raise FrameTooLarge(f"a frame of {size} bytes exceeds the bound of {MAX_FRAME_BYTES} bytes")
        if len(self._frames) >= MAX_FRAMES or self._bytes + size > MAX_BYTES:
            raise SessionBusy(f"{len(self._frames)} frames already wait to be sent to this replica")
        self._frames.append((frame, size))
        self._bytes += size
        self._ready.set()

    def cancel(self, request: int) -> None:
        """Queue a cancel; the same number twice is sent once. Bounded by the running requests."""
        self._cancels[request] = None
        self._ready.set()

    def withdraw(self, request: int) -> bool:
        """Take a Submit back that was not sent yet; whether it was still here."""
        for entry in self._frames:
            frame, size = entry
            if frame.HasField("submit") and frame.submit.request == request:
                self._frames.remove(entry)
                self._bytes -= size
                return True
        return False

    async def next(self) -> pb.ClientFrame:
        """The next frame to send; waits for one."""
        while True:
            if self._cancels:
                request = next(iter(self._cancels))
                del self._cancels[request]
                return pb.ClientFrame(cancel=pb.Cancel(request=request))
            if self._frames:
                frame, size = self._frames.popleft()
                self._bytes -= size
                return frame
            self._ready.clear()
            await self._ready.wait()
