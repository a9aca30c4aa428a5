"""What a node says of itself when it asks another one for files: who it is and what it wants, signed by its key."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft_contracts.ids import NodeId

NODE, NONCE, SIGNATURE = "weft-node", "weft-nonce", "weft-signature"
RENEW_S: Final = 60.0
"""Gateways take words of the last five minutes."""
_FORMS: Final = {
    NODE: re.compile(r"[a-z0-9-]{1,40}", re.ASCII),
    NONCE: re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII),
    SIGNATURE: re.compile(r"[A-Za-z0-9+/=]{1,128}", re.ASCII),
}


def words_for(files: str, holder: NodeId) -> str:
    """What is signed, to read these files (`digest.files_digest`) of this node and of no other."""
    return f"files:{files}:{holder}"


@dataclass(frozen=True, slots=True)
class Words:
    """A reader's, as they came: whether they are true a gateway tells."""

    node: NodeId
    nonce: str
    signature: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Words | None":
        """Of a request's headers; None where they lack any, or hold what can be none."""
        found = {name: headers.get(name, "") for name in _FORMS}
        if any(not form.fullmatch(found[name]) for name, form in _FORMS.items()):
            return None
        return cls(NodeId(found[NODE]), found[NONCE], found[SIGNATURE])

    def body(self) -> dict[str, str]:
        """As a gateway takes them."""
        return {"node": self.node, "nonce": self.nonce, "signature": self.signature}


class SignedHeaders(Mapping[str, str]):
    """The headers of a reader, signed anew when they are old: a transfer outlasts a signature. For one thread."""

    def __init__(self, sign: Callable[[], Mapping[str, Any]], clock: Callable[[], float] = time.monotonic) -> None:
        """`sign` answers node, nonce and signature."""
        self._sign = sign
        self._clock = clock
        self._signed_at: float | None = None
        self._held: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        """A copy begins here, so that it is of one signature."""
        now = self._clock()
        if self._signed_at is None or now - self._signed_at > RENEW_S:
            signed = self._sign()
            self._held = {NODE: signed["node"], NONCE: signed["nonce"], SIGNATURE: signed["signature"]}
            self._signed_at = now
        return iter(self._held)

    def __getitem__(self, name: str) -> str:
        return self._held[name]

    def __len__(self) -> int:
        return len(_FORMS)
