"""What every service tells of itself at `/metrics`: whether it is well, leads, and how far its folds are.

Read at each scrape from what is in memory. Some twenty series a process, however large the mesh is.
"""

from collections.abc import Callable, Collection, Iterable
from importlib.metadata import version

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_eventlog import Projection

from weft_runtime.health import Health
from weft_runtime.leadership import Leadership


class ServiceMetrics(Collector):
    """One process's own. `projections` and `leadership` are asked at each scrape: they come while it starts."""

    def __init__(
        self,
        service: str,
        health: Health,
        connected: Callable[[], bool],
        reconnects: Callable[[], int] | None = None,
        projections: Callable[[], Collection[Projection]] = tuple,
        leadership: Callable[[], Leadership | None] = lambda: None,
    ) -> None:
        self._service = service
        self._health = health
        self._connected = connected
        self._reconnects = reconnects
        self._projections = projections
        self._leadership = leadership
        self._version = version("weft-runtime")

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered: there is nothing to look at yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        info = GaugeMetricFamily("weft_service_info", "1, with what runs here", labels=("service", "version"))
        info.add_metric((self._service, self._version), 1)
        yield info
        yield from self._wellness()
        yield from self._folds()
        leadership = self._leadership()
        if leadership is not None:
            yield GaugeMetricFamily(
                "weft_service_leads", "Whether this instance decides for its service", value=leadership.held
            )

    def _wellness(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("weft_service_ready", "Whether it can do its work", value=self._health.ready)
        problems = GaugeMetricFamily(
            "weft_service_problems",
            "Parts with a problem: of this process itself (own), or of the mesh as it sees it (mesh)",
            labels=("whose",),
        )
        own = self._health.own
        problems.add_metric(("own",), own)
        problems.add_metric(("mesh",), len(self._health.problems) - own)
        yield problems
        yield GaugeMetricFamily(
            "weft_log_connected", "Whether this process is connected to NATS", value=self._connected()
        )
        if self._reconnects is not None:
            yield CounterMetricFamily(
                "weft_log_reconnects", "How often it has connected to NATS anew", value=self._reconnects()
            )

    def _folds(self) -> Iterable[Metric]:
        position, behind, halted, suspects = (
            GaugeMetricFamily(f"weft_fold_{name}", what, labels=("fold",))
            for name, what in (
                ("position", "Sequence of the last commit that was folded"),
                ("behind", "Commits that the log is known to hold behind that"),
                ("halted", "Whether nothing may be decided from the fold any more"),
                ("suspects", "Aggregates that are set aside since a commit of theirs can't be read"),
            )
        )
        for projection in self._projections():
            name = (projection.name,)
            position.add_metric(name, projection.position)
            behind.add_metric(name, projection.behind)
            halted.add_metric(name, projection.halted is not None)
            suspects.add_metric(name, len(projection.suspects))
        yield from (position, behind, halted, suspects)
