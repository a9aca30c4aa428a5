"""`python -m weft_observer.otlp`."""

import sys

from weft_runtime.arguments import refuse_arguments

from weft_observer.observer import Observer
from weft_observer.otlp.collector import Collector
from weft_observer.otlp.settings import OtlpSettings


def main() -> int:
    """Export until told to stop."""
    settings = OtlpSettings()  # pyright: ignore[reportCallIssue]  # the environment has the rest
    observer = Observer(settings)

    def start() -> None:
        collector = Collector(settings, settings.credential()[0])
        observer.on()(collector.export)
        observer.on_stop(collector.close)

    return observer.run(start)


if __name__ == "__main__":
    refuse_arguments("weft_observer.otlp", OtlpSettings, sys.argv[1:])
    raise SystemExit(main())
