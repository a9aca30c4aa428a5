"""What the API shows of an engine's profile."""

from typing import Any

from weft_contracts.engines import BUILTIN, Argument, ArgumentClaim, EngineProfile, HeaderClaim
from weft_contracts.engines.profile import Install, LoraSupport
from weft_gateway.domain.engine_shapes import profile_shape

PROFILE = EngineProfile(
    name="acme",
    serves=("chat",),
    formats=("gguf",),
    vendors=("nvidia", "cpu"),
    claim=HeaderClaim(
        slack=0.05,
        overhead=7,
        cpu_overhead=3,
        share_argument="share",
        host_overhead=5,
        layers_argument="slots",
        step_argument="slots",
        step_tokens=11,
        step_bytes=13,
        drops_before_windows=True,
        block_tokens=17,
        draft_argument="small",
    ),
    lora=LoraSupport(most=3, scales=True),
    splits=("devices",),
    arguments={
        "share": Argument(type="number", above=0, most=1),
        "slots": Argument(type="integer", least=1),
        "pooling": Argument(type="text", choices=("mean", "cls")),
    },
    install=Install(package="acme", also=("acme-cpu",), extra="gpu", adapter="acme.weft:Acme", vendors=("cpu",)),
)


def test_all_of_a_profile_is_shown() -> None:
    unbounded: dict[str, Any] = {
        "least": None,
        "most": None,
        "above": None,
        "choices": [],
        "form": "",
        "required": False,
    }

    assert {
        "name": "acme",
        "digest": PROFILE.digest,
        "builtin": False,
        "serves": ["chat"],
        "formats": ["gguf"],
        "vendors": ["nvidia", "cpu"],
        "made_up_devices": False,
        "claim": {
            "formula": "header",
            "slack": 0.05,
            "overhead": 7,
            "cpu_overhead": 3,
            "share_argument": "share",
            "host_overhead": 5,
            "layers_argument": "slots",
            "step_argument": "slots",
            "step_tokens": 11,
            "step_bytes": 13,
            "drops_before_windows": True,
            "block_tokens": 17,
            "draft_argument": "small",
        },
        "splits": ["devices"],
        "resumes_greedy": False,
        "lora": {"most": 3, "scales": True},
        "arguments": {
            "share": {**unbounded, "type": "number", "above": 0, "most": 1},
            "slots": {**unbounded, "type": "integer", "least": 1},
            "pooling": {**unbounded, "type": "text", "choices": ["mean", "cls"]},
        },
        "install": {
            "package": "acme",
            "also": ["acme-cpu"],
            "extra": "gpu",
            "adapter": "acme.weft:Acme",
            "vendors": ["cpu"],
        },
    } == profile_shape(PROFILE)


def test_an_engine_that_is_told_its_memory_shows_by_which_argument() -> None:
    told = PROFILE.model_copy(update={"claim": ArgumentClaim(argument="slots", default=5)})

    assert {"formula": "argument", "argument": "slots", "default": 5} == profile_shape(told)["claim"]


def test_the_engines_that_come_with_weft_are_shown_as_such() -> None:
    assert [True] * len(BUILTIN) == [profile_shape(profile)["builtin"] for profile in BUILTIN.values()]
