"""What can be wrong with a profile beside its types. Each fault is a sentence: where, what, and what would be right."""

from collections.abc import Iterator, Mapping, Sequence

from weft_contracts.engines.profile import Argument, ArgumentClaim, EngineProfile

MOST_BYTES = 16 * 1024
"""Of a profile, as JSON: it stands in every service's memory, and a commit has its limit."""


def fault_of_profile(profile: EngineProfile) -> str | None:
    """The first fault; None where there is none."""
    return next(_faults(profile), None)


def _faults(profile: EngineProfile) -> Iterator[str]:
    size = len(profile.model_dump_json().encode())
    if size > MOST_BYTES:
        yield f"the profile takes {size} bytes as JSON, {MOST_BYTES} are allowed: leave arguments or choices out"
    lists: Mapping[str, Sequence[str]] = {
        "serves": profile.serves,
        "formats": profile.formats,
        "vendors": profile.vendors,
        "splits": profile.splits,
    }
    for name, values in lists.items():
        if not values and name in ("serves", "vendors"):
            yield f"{name} is empty: name at least one"
        if len(set(values)) < len(values):
            yield f"{name} names something twice: name each once"
    for name, argument in profile.arguments.items():
        yield from (f"arguments.{name}: {fault}" for fault in _argument(argument))
    yield from _claim(profile)
    install = profile.install
    if not install.package:
        yield "install.package is empty: name the distribution whose version is the engine's"
    if not all(install.also):
        yield "install.also has an empty name: leave it out"
    named = (("package", install.package), ("extra", install.extra), ("adapter", install.adapter))
    for name, text in (*named, ("also", "".join(install.also))):
        if not text.isprintable():
            yield f"install.{name} holds characters that can't be printed"


def _argument(argument: Argument) -> Iterator[str]:
    bounds = [bound for bound in (argument.least, argument.above) if bound is not None]
    if (bounds or argument.most is not None) and argument.type not in ("integer", "number"):
        yield f"least, most and above are for integer and number, the type is {argument.type}"
    if argument.choices and argument.type != "text":
        yield f"choices are for text, the type is {argument.type}"
    if argument.form and argument.type != "text":
        yield f"a form is for text, the type is {argument.type}"
    if not all(choice.isprintable() for choice in argument.choices):
        yield "a choice holds characters that can't be printed"
    if argument.most is not None:
        if argument.least is not None and argument.least > argument.most:
            yield f"least is {argument.least} and most is {argument.most}: nothing lies between"
        if argument.above is not None and argument.above >= argument.most:
            yield f"above is {argument.above} and most is {argument.most}: nothing lies between"


def _claim(profile: EngineProfile) -> Iterator[str]:
    claim = profile.claim
    if isinstance(claim, ArgumentClaim):
        argument = profile.arguments.get(claim.argument)
        if argument is None or argument.type != "integer":
            yield f"claim.argument is {claim.argument}: it must be one of arguments, of type integer, in bytes"
        if claim.default == 0:
            yield "claim.default is 0: say how many bytes a replica takes where the argument is absent"
        return
    if not profile.formats:
        yield "claim.formula is header, which reads a file's header, and formats is empty: name one, or use argument"
    if claim.share_argument is not None:
        argument = profile.arguments.get(claim.share_argument)
        if argument is None or argument.type != "number":
            yield f"claim.share_argument is {claim.share_argument}: it must be one of arguments, of type number"
    if claim.layers_argument is not None:
        argument = profile.arguments.get(claim.layers_argument)
        if argument is None or argument.type != "integer":
            yield f"claim.layers_argument is {claim.layers_argument}: it must be one of arguments, of type integer"
