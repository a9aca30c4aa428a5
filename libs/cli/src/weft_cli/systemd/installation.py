"""Where the Weft that runs lies: what the user of a unit must be able to read."""

import sys
from pathlib import Path


def paths() -> tuple[Path, ...]:
    """The environment, the Python that it was made of, and folders that packages are read from."""
    found = [Path(sys.executable), Path(sys.executable).resolve(), Path(sys.prefix), Path(sys.base_prefix)]
    found += [Path(each) for each in sys.path if each and Path(each).is_dir()]
    return tuple(dict.fromkeys(each.absolute() for each in found))
