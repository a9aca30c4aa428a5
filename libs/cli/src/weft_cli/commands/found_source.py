"""What a worker found at a source that workers fetch, in a line: its commit, files, size, licence and gate."""

from typing import TYPE_CHECKING

from weft_client.units import size

from weft_cli.render import cut, printable

if TYPE_CHECKING:
    from weft_api import Deployed

_LONGEST = 300


def found_in_words(answer: "Deployed") -> str:
    """The line; empty for a source that nobody fetches."""
    files, source = answer.get("files", ""), answer.get("source", "")
    if not files:
        return ""
    counted = "1 file" if files == "1" else f"{files} files"
    licence = answer.get("licence", "")
    parts = [
        f"{counted} of {size(int(answer.get('bytes', 0)))}",
        f"licence {licence}" if licence else "no licence told",
    ]
    if answer.get("gated"):
        parts.append("gated: its terms were accepted")
    told = ", ".join(parts)
    return cut(printable(f"{source}: {told}" if source else told), _LONGEST)
