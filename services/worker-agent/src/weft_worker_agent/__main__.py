"""`python -m weft_worker_agent` is the keeper; with `--agent`, as the keeper starts it, the agent."""

import os
import sys


def main(arguments: list[str]) -> int:
    """Run one or the other and return the exit status. Each imports only its own."""
    if arguments == ["--agent"]:
        from weft_worker_agent.app import run_agent

        return run_agent()
    from weft_worker_agent.outbound.keeper import keeper, options

    try:
        return keeper.run(options.parse(arguments, os.environ))
    except options.BadOption as error:
        print(f"weft worker: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
