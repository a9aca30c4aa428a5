"""Named files with a checksum and a length: one resolver that fetches them, one store that keeps them."""

from weft_files.address import Address
from weft_files.blobs import Blob
from weft_files.bounds import Bounds
from weft_files.checksum import BadChecksum, Checksum
from weft_files.coming import Coming
from weft_files.faults import NoRoom, NotFetched
from weft_files.layout import Layout, LayoutTaken
from weft_files.names import BadName
from weft_files.reach import Reach
from weft_files.resolver import NodeTrust, Resolver
from weft_files.store import Store
from weft_files.transfer import Told
from weft_files.wanted import Wanted

__all__ = [
    "Address",
    "BadChecksum",
    "BadName",
    "Blob",
    "Bounds",
    "Checksum",
    "Coming",
    "Layout",
    "LayoutTaken",
    "NoRoom",
    "NodeTrust",
    "NotFetched",
    "Reach",
    "Resolver",
    "Store",
    "Told",
    "Wanted",
]
