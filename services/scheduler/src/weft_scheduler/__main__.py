"""`python -m weft_scheduler`: run the scheduler until it is told to stop."""

from weft_runtime.service import Runtime, serve

from weft_scheduler.app import start
from weft_scheduler.settings import SchedulerSettings


def main() -> int:
    """Run the service. Returns the exit status."""
    settings = SchedulerSettings()

    async def started(runtime: Runtime) -> None:
        await start(runtime, settings.rules)

    return serve("scheduler", settings, started)


if __name__ == "__main__":
    raise SystemExit(main())
