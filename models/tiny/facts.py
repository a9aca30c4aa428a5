"""Write the plain list of facts that tests elsewhere draw from.

From the root of the repository: `python -m models.tiny.facts FILE.json`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from models.tiny.inventions import COUNTRIES_HELD_OUT
from models.tiny.phrasings import CAPITAL_HELD_OUT
from models.tiny.table import CAPITALS, UNKNOWN


def facts() -> dict[str, Any]:
    """Return the facts, held-out phrasings, the words for what is not known and some invented countries."""
    return {
        "questions": [{"country": country, "capital": capital} for country, capital in CAPITALS.items()],
        "held_out": list(CAPITAL_HELD_OUT),
        "unknown": UNKNOWN,
        "invented": list(COUNTRIES_HELD_OUT[:20]),
    }


def main() -> None:
    """Write the list from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path, help="the JSON file to write")
    parser.parse_args().target.write_text(json.dumps(facts(), indent=1) + "\n")


if __name__ == "__main__":
    main()
