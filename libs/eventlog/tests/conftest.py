"""What several files' tests need."""

import pytest
from weft_eventlog import log as event_log


@pytest.fixture
def short_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of a server that goes away just then is soon asked again."""
    monkeypatch.setattr(event_log, "_ONE_TRY", 1.0)
