"""Fetches named files, whole and verified or not at all; the one that everything else stands on."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType

from weft_files.address import Address
from weft_files.asking import Trust
from weft_files.blobs import Blob
from weft_files.bounds import Bounds
from weft_files.faults import Cut, Fault, NotFetched, Refused
from weft_files.incoming import Incoming, Nearer
from weft_files.locks import FileLock
from weft_files.reach import Reach
from weft_files.store import Store
from weft_files.transfer import Told, Transfer
from weft_files.wanted import Wanted


class Resolver:
    """One for a process. Its byte work runs in threads, so the event loop stays free."""

    def __init__(self, store: Store, reach: Reach, *, bounds: Bounds | None = None, trust: Trust | None = None) -> None:
        """`trust`: the TLS of an address, and whom its certificate must name; None: the system's authorities."""
        self._store = store
        self._reach = reach
        self._bounds = bounds or Bounds()
        self._trust = trust or SystemTrust()
        self._threads = ThreadPoolExecutor(self._bounds.fetches, thread_name_prefix="fetch")

    async def fetch(
        self,
        wanted: Wanted,
        addresses: Sequence[Address],
        progress: Callable[[int], None] | None = None,
        told: Told | None = None,
        *,
        nearer: Mapping[str, Nearer] = MappingProxyType({}),
    ) -> Blob:
        """The blob, from the store or from the first address that gives it. `progress` gets the bytes so far, `told`
        hears whom they are asked for. `nearer`: what is asked before the addresses, by what people call it; for files
        whose content a checksum tells.

        However many processes ask at once, one transfers. Raises NotFetched and NoRoom. Cancelled, it leaves nothing
        that anybody sees, and pieces of a large file for the next fetch to go on with."""
        if (blob := await asyncio.to_thread(self._store.find, wanted, addresses)) is not None:
            return blob
        transfer = Transfer(self._store, self._reach, self._bounds, self._trust, wanted, addresses, told)
        lock = self._store.transfer_lock(transfer.path)
        await self._turn(lock, transfer, progress)
        job: Future[Blob] | None = None
        try:
            if (blob := await asyncio.to_thread(self._store.find, wanted, addresses)) is not None:
                return blob
            for said, near in nearer.items():
                try:
                    return await self._from_near(wanted, near)
                except Fault as fault:
                    transfer.note(said, fault)
            job = self._threads.submit(transfer.run)
            return await self._watch(job, transfer, progress, told)
        finally:
            if job is None:
                lock.release()
            else:  # at once, or when a cancelled transfer's thread has really ended
                job.add_done_callback(lambda _: lock.release())

    def close(self) -> None:
        """No further fetches; those that run go on until they are cancelled."""
        self._threads.shutdown(wait=False)

    async def _from_near(self, wanted: Wanted, near: Nearer) -> Blob:
        """Raises Fault, NoRoom."""
        if wanted.size is not None and wanted.size > wanted.cap:
            raise Refused(f"is not asked: {wanted.size} bytes are wanted, {wanted.cap} are the most that we take")
        with Incoming(self._store, wanted) as incoming:
            await near(incoming.write)
            return await asyncio.to_thread(incoming.finish)

    async def _turn(self, lock: FileLock, transfer: Transfer, progress: Callable[[int], None] | None) -> None:
        """Wait while another transfer brings the same file, as long as more of it comes."""
        seen, since = -1, time.monotonic()
        while not lock.take():
            now = transfer.bytes_elsewhere()
            if now != seen:
                seen, since = now, time.monotonic()
                if progress is not None and now > 0:
                    progress(now)
            if time.monotonic() - since > self._bounds.held:
                raise NotFetched(f"another process has been fetching this file for {self._bounds.held:g} s, in vain")
            await asyncio.sleep(self._bounds.look)

    async def _watch(
        self, job: Future[Blob], transfer: Transfer, progress: Callable[[int], None] | None, told: Told | None
    ) -> Blob:
        ended = asyncio.wrap_future(job)
        last, moved = -1, 0
        try:
            while True:
                done, _ = await asyncio.wait({ended}, timeout=self._bounds.look)
                if progress is not None and (so_far := transfer.bytes_so_far) != last:
                    last = so_far
                    progress(so_far)
                if told is not None and (now := transfer.bytes_moved) != moved:
                    moved = now
                    told.moved()
                if done:
                    return ended.result()
        finally:
            if not job.done():
                transfer.stop()
                job.cancel()  # where it has not begun
                await asyncio.wait({ended}, timeout=self._bounds.stop)
                if ended.done() and not ended.cancelled():
                    ended.exception()


class NodeTrust:
    """Registered nodes by the mesh's own authority, all others by those that the system trusts."""

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        """`context`: the mesh's, with the certificate that we show; asked for at each connection, as it is renewed."""
        self._context = context
        self._others = SystemTrust()

    def __call__(self, address: Address) -> tuple[ssl.SSLContext, str]:
        """Raises Cut where our own certificate can't be read just now."""
        if not address.node:
            return self._others(address)
        try:
            return self._context(), address.node
        except OSError as error:
            raise Cut(f"can't be asked: our own certificate can't be read ({error})") from None


class SystemTrust:
    """The authorities that the system trusts; read once, when first needed."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    def __call__(self, address: Address) -> tuple[ssl.SSLContext, str]:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context, ""
