"""One blob from several addresses in turn, in a thread: the first that gives what is wanted ends it."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from weft_files.address import Address
from weft_files.asking import Trust
from weft_files.blobs import Blob
from weft_files.bounds import Bounds
from weft_files.connection import Sockets
from weft_files.faults import Fault, Mismatch, NoRoom, NotFetched
from weft_files.filling import Filling
from weft_files.following import Following
from weft_files.partial import Partial
from weft_files.reach import Reach
from weft_files.room import Reservation
from weft_files.store import Store
from weft_files.wanted import Wanted


class Told(Protocol):
    """Who hears how a transfer goes, in its thread or on the loop: quick, and never fails."""

    def asks(self, address: Address) -> None:
        """This one is asked from now on."""
        ...

    def moved(self) -> None:
        """Bytes came since this was said last, were it few of a piece."""
        ...

    def failed(self, address: Address, why: str, *, wrong: bool) -> None:
        """It did not give the file. `wrong`: what it alone gave is not what it should be."""
        ...


class Transfer:
    """`run` blocks until the blob is in the store, and raises NotFetched, NoRoom or Stopped; `stop` from any thread."""

    def __init__(
        self,
        store: Store,
        reach: Reach,
        bounds: Bounds,
        trust: Trust,
        wanted: Wanted,
        addresses: Sequence[Address],
        told: Told | None = None,
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._addresses = tuple(addresses)
        self._sockets = Sockets()
        self._reach, self._bounds, self._trust = reach, bounds, trust
        self._told = told
        self._tries: list[tuple[str, str]] = []
        self.path: Path = store.partial_path(wanted, addresses)
        self._partial: Partial | None = None

    def stop(self) -> None:
        self._sockets.stop()

    def run(self) -> Blob:
        wanted = self._wanted
        if wanted.size is not None and wanted.size > wanted.cap:
            said = f"{wanted.name} exceeds cap: it has {wanted.size} bytes, {wanted.cap} are the most that we take"
            raise NotFetched(said)
        partial = Partial(self.path, wanted.size, self._bounds.piece, tells_content=wanted.tells_content)
        self._partial = partial
        try:
            with self._store.reserve(0) as room:
                room.filled(partial.came)
                room.need(wanted.size or 0)
                return self._from_each(partial, room)
        except BaseException as error:
            # Pieces are left only where nothing says that they are wrong: the next fetch goes on from them.
            if not partial.pieces or wanted.size is None or isinstance(error, NoRoom):
                partial.remove()
            raise
        finally:
            partial.close()

    def bytes_elsewhere(self) -> int:
        """What of it lies on the disk, while another transfer writes it."""
        try:
            found = self.path.stat()
        except OSError:
            return 0
        return min(found.st_size, found.st_blocks * 512)

    @property
    def bytes_so_far(self) -> int:
        return 0 if self._partial is None else self._partial.came

    @property
    def bytes_moved(self) -> int:
        """All that came over the network, whether it stays or not."""
        return self._sockets.moved

    def _from_each(self, partial: Partial, room: Reservation) -> Blob:
        queue = deque(self._addresses)
        asked_alone = False
        following = Following(partial, self._wanted.checksum)
        while queue:
            address = queue.popleft()
            filling = Filling(
                address,
                self._wanted,
                partial,
                room,
                reach=self._reach,
                bounds=self._bounds,
                sockets=self._sockets,
                trust=self._trust,
            )
            try:
                self._sockets.check()
                if asked_alone:
                    partial.clear()
                if self._told is not None:
                    self._told.asks(address)
                filling.fill(following)
                digits = following.finish()
            except Mismatch as fault:
                mixed = partial.contributors - {filling.own}
                partial.clear()
                self._note(address, fault, wrong=not mixed)
                if mixed and not asked_alone:  # whose bytes were wrong is told by asking each of them alone
                    asked_alone = True
                    queue = deque(self._addresses)
            except Fault as fault:
                self._note(address, fault)
            else:
                partial.sync()
                blob = self._store.adopt(partial.path, digits, self._wanted, self._addresses)
                partial.remove()
                return blob
        raise NotFetched(self._sentence(), self._tries)

    def note(self, said: str, fault: Fault) -> None:
        """Why one of those that were asked gave nothing; `said`: what people call it."""
        self._tries.append((said, str(fault)))

    def _note(self, address: Address, fault: Fault, *, wrong: bool = False) -> None:
        self.note(address.said, fault)
        if self._told is not None:
            self._told.failed(address, str(fault), wrong=wrong)

    def _sentence(self) -> str:
        said = "; ".join(f"{said} {reason}" for said, reason in self._tries[-4:]) or "no address is known"
        return f"{self._wanted.name} was not fetched: {said}"
