"""How files are sent to a mesh, as sender, gateway and node know it."""

from typing import Final

UPLOADS: Final = "/api/uploads/"
"""Under it lie the gateway's routes: `<files_digest>/<file name>`."""
CHECKSUM_HEADER: Final = "weft-checksum"
"""Beside a range: the whole file's checksum, as the spec has it. Another than the spec's is refused."""
MOST_CHUNK: Final = 64 << 20
"""Bytes of a file in one request."""
