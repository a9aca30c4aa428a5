"""`python -m weft_worker_agent` is the supervisor; with `--agent`, as the supervisor starts it, the agent."""

import os
import sys


def main(arguments: list[str]) -> int:
    """Run one or the other and return the exit status. Each imports only its own."""
    if arguments == ["--agent"]:
        from weft_worker_agent.app import run_agent

        return run_agent()
    from weft_worker_agent.outbound.supervisor import join_token, options, supervisor

    try:
        join_token.leave_environment()
        return supervisor.run(options.parse(arguments, os.environ, join_token.taken()))
    except (options.BadOption, join_token.BadToken) as error:
        print(f"weft worker: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
