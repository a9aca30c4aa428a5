"""`python -m weft_worker_agent` is the supervisor; with `--agent`, as the supervisor starts it, the agent."""

import os
import sys
from typing import Any


def main(arguments: list[str]) -> int:
    """Run one or the other and return the exit status. Each imports only its own."""
    if arguments == ["--agent"]:
        return run_agent()
    from weft_worker_agent.outbound.supervisor import join_token, options, supervisor

    try:
        join_token.leave_environment()
        return supervisor.run(options.parse(arguments, os.environ, join_token.taken()))
    except (options.BadOption, join_token.BadToken) as error:
        print(f"weft worker: {error}", file=sys.stderr)
        return 2


def run_agent() -> int:
    """Run the agent to its end; the exit status of the process. 78: starting it again is in vain."""
    import asyncio

    from pydantic import SecretStr, ValidationError
    from weft_runtime import logs, traces

    from weft_worker_agent.app import Agent
    from weft_worker_agent.outbound.mesh.certificate import NoKey, secured
    from weft_worker_agent.outbound.mesh.identity import BadIdentity, load_or_make
    from weft_worker_agent.outbound.mesh.joining import CannotJoin
    from weft_worker_agent.outbound.processes.supervisor_client import SupervisorGone
    from weft_worker_agent.outbound.supervisor import join_token
    from weft_worker_agent.outbound.supervisor.join_token import BadToken
    from weft_worker_agent.settings import WorkerSettings

    log: Any = logs.get_logger("weft.worker_agent")
    try:
        given = join_token.taken().decode()
        settings = WorkerSettings(join_token=SecretStr(given)) if given else WorkerSettings()
        if settings.keeper_socket is None:
            return _refuse("the agent is started by its supervisor: run python -m weft_worker_agent")
        identity = load_or_make(settings.state)
        certificate = secured(settings.state, settings.gateway_url, settings.token[1])
    except ValidationError as error:
        first = error.errors()[0]
        name = "WEFT_" + "_".join(str(part) for part in first["loc"]).upper()
        return _refuse(f"{name}: {first['msg']}")
    except (BadIdentity, NoKey, BadToken, OSError) as error:
        return _refuse(str(error))
    logs.configure("worker-agent", identity.node, settings.log_level, settings.log_format)
    traces.configure("worker-agent", identity.node, settings.otlp_endpoint)
    try:
        asyncio.run(Agent(settings, settings.keeper_socket, identity, certificate).run())
    except CannotJoin as refusal:
        return _refuse(str(refusal))
    except NoKey as error:
        log.error("the agent can't run", why=str(error))
        return 1
    except SupervisorGone as error:
        log.error("the supervisor is gone", why=str(error))
        return 1
    except OSError as error:
        log.error("the agent can't run", why=str(error))
        return 1
    finally:
        traces.flush()
    return 0


def _refuse(sentence: str) -> int:
    from weft_worker_agent.outbound.supervisor.agent_process import BAD_CONFIGURATION

    print(f"weft worker: {sentence}", file=sys.stderr)
    return BAD_CONFIGURATION


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
