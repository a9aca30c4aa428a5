"""`python -m weft_scheduler`: run the scheduler until it is told to stop."""

import sys

from weft_runtime.arguments import refuse_arguments
from weft_runtime.service import Runtime, serve

from weft_scheduler.app import start
from weft_scheduler.settings import SchedulerSettings


def main() -> int:
    """Run the service. Returns the exit status."""
    refuse_arguments("weft_scheduler", SchedulerSettings, sys.argv[1:])
    settings = SchedulerSettings()

    async def started(runtime: Runtime) -> None:
        await start(runtime, settings.rules)

    return serve("scheduler", settings, started)


if __name__ == "__main__":
    raise SystemExit(main())
