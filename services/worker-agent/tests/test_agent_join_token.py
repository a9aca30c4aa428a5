"""The registration token on its way to the agent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from weft_runtime import secret_pipe
from weft_worker_agent.outbound.supervisor.join_token import BadToken, leave_environment, taken

SHOW = """
import json, os, sys
from weft_worker_agent.outbound.supervisor import join_token
join_token.leave_environment()
said = open("/proc/self/environ").read() if os.path.exists("/proc/self/environ") else ""
token = join_token.taken()
print(json.dumps([token.decode(), "s3cret" in said, sorted(k for k in os.environ if "TOKEN" in k), sys.argv[1:]]))
"""


def test_a_token_in_the_environment_leaves_it_for_good_and_is_not_lost() -> None:
    env = {"PATH": os.defpath, "WEFT_JOIN_TOKEN": "s3cret", "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(
        [sys.executable, "-c", SHOW, "--state", "x"], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert '["s3cret", false, [], ["--state", "x"]]' == said.stdout.strip()


def test_a_token_that_was_handed_over_can_be_read_once() -> None:
    environ = {"WEFT_JOIN_TOKEN_FD": str(secret_pipe.give(b"s3cret")), "OTHER": "1"}
    leave_environment(environ)
    descriptor = environ["WEFT_JOIN_TOKEN_FD"]
    assert (b"s3cret", {"OTHER": "1"}) == (taken(environ), environ)
    with pytest.raises(BadToken, match="is no open file descriptor"):
        taken({"WEFT_JOIN_TOKEN_FD": descriptor})


def test_where_there_is_none_there_is_none() -> None:
    environ = {"WEFT_JOIN_TOKEN": ""}
    leave_environment(environ)
    assert b"" == taken(environ)


def test_what_is_too_long_for_a_token_is_refused_without_being_shown() -> None:
    with pytest.raises(BadToken) as refused:
        leave_environment({"WEFT_JOIN_TOKEN": "s" * 5000})
    assert "WEFT_JOIN_TOKEN is no registration token: it has 5000 bytes" in str(refused.value)
    assert "ssss" not in str(refused.value)


def test_a_token_may_lie_in_a_file_and_one_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret.digest\n")
    environ = {"WEFT_JOIN_TOKEN_FILE": str(file)}
    leave_environment(environ)
    assert (b"s3cret.digest", {}) == (taken(environ), environ)
    # what the environment says itself goes before it
    assert b"other" == taken({"WEFT_JOIN_TOKEN_FILE": str(file), "WEFT_JOIN_TOKEN": "other"})
    for content, says in (("", "holds no registration token"), ("s" * 5000, "holds no registration token")):
        file.write_text(content)
        with pytest.raises(BadToken, match=says):
            taken({"WEFT_JOIN_TOKEN_FILE": str(file)})
    with pytest.raises(BadToken, match="can't be read: No such file"):
        taken({"WEFT_JOIN_TOKEN_FILE": str(tmp_path / "none")})
