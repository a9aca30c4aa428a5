"""Let the tests import `models.tiny` from the root of the repository, however pytest is started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
