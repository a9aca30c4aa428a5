"""What an observer counts, for `/metrics`."""

from prometheus_client import Counter, Gauge

FACTS = Counter("weft_observer_facts_total", "Facts of the log, by what became of them", ["outcome"])
"""`handled`; `passed_over`: nobody asked for it; `unknown`: of a newer mesh, or not to be read; `dead`."""
TRIES = Counter("weft_observer_failed_tries_total", "Tries of a handler that failed")
POSITION = Gauge("weft_observer_position", "Log position of the last commit that is done with")
BEHIND = Gauge("weft_observer_commits_behind", "Commits that the log holds behind that one")
