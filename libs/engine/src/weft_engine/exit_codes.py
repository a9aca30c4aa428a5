"""How a host's process ends, for who started it; with 0 where it was retired or told to stop."""

from typing import Final

OTHER_FAILURE: Final = 1
PERMANENT_FAILURE: Final = 3
"""Another try would meet it again."""
