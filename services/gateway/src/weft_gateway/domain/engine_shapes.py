"""What the API shows of an engine's profile."""

import weft_api as api
from weft_contracts.engines import BUILTIN, Argument, ArgumentClaim, EngineProfile


def profile_shape(profile: EngineProfile) -> api.EngineProfile:
    """All of it, with its digest."""
    install = profile.install
    return {
        "name": profile.name,
        "digest": profile.digest,
        "builtin": profile.name in BUILTIN,
        "serves": list(profile.serves),
        "formats": list(profile.formats),
        "vendors": list(profile.vendors),
        "made_up_devices": profile.made_up_devices,
        "claim": _claim(profile),
        "splits": list(profile.splits),
        "resumes_greedy": profile.resumes_greedy,
        "lora": None if profile.lora is None else {"most": profile.lora.most, "scales": profile.lora.scales},
        "arguments": {name: _argument(argument) for name, argument in profile.arguments.items()},
        "install": {
            "package": install.package,
            "also": list(install.also),
            "extra": install.extra,
            "adapter": install.adapter,
            "vendors": list(install.vendors),
        },
    }


def _claim(profile: EngineProfile) -> api.HeaderClaim | api.ArgumentClaim:
    claim = profile.claim
    if isinstance(claim, ArgumentClaim):
        return {"formula": claim.formula, "argument": claim.argument, "default": claim.default}
    return {
        "formula": claim.formula,
        "slack": claim.slack,
        "overhead": claim.overhead,
        "cpu_overhead": claim.cpu_overhead,
        "share_argument": claim.share_argument,
        "host_overhead": claim.host_overhead,
        "layers_argument": claim.layers_argument,
        "step_argument": claim.step_argument,
        "step_tokens": claim.step_tokens,
        "step_bytes": claim.step_bytes,
        "drops_before_windows": claim.drops_before_windows,
        "block_tokens": claim.block_tokens,
        "draft_argument": claim.draft_argument,
    }


def _argument(argument: Argument) -> api.EngineArgument:
    return {
        "type": argument.type,
        "least": argument.least,
        "most": argument.most,
        "above": argument.above,
        "choices": list(argument.choices),
        "form": argument.form,
        "required": argument.required,
    }
