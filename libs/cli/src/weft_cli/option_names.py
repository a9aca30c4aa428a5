"""Errors in the words of whoever typed: the option's name, where the gateway names the field that it filled."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial

from weft_client.gateway import Refused

_LAYOUT = {
    "tensor_parallel": "--tensor-parallel",
    "pipeline_parallel": "--pipeline-parallel",
    "gpus": "--gpu",
    "gpus_per_replica": "--gpus-per-replica",
    "preferred_nodes": "--prefer-node",
    "distributed": "--distributed",
    "cpu_offload": "--no-cpu-offload",
}
DEPLOY = {
    "name": "--name",
    "spec.source": "SOURCE",
    "spec.source.path": "SOURCE",
    "spec.source.secret": "--source-secret",
    "spec.engine": "--engine",
    "spec.engine_args": "--engine-arg",
    "spec.adapters": "--lora",
    "spec.context_tokens": "--context",
    "spec.concurrency": "--concurrency",
    "spec.policy": "--policy",
    "spec.selector": "--selector",
    "spec.capability": "--capability",
    "spec.anti_affinity": "--anti-affinity",
    **{f"{before}layout.{name}": option for name, option in _LAYOUT.items() for before in ("spec.", "")},
    "max_surge": "--max-surge",
    "max_unavailable": "--max-unavailable",
    "progress_s": "--progress",
    "scaling": "--scaling",
    "spec.priority": "--priority",
    "spec.min_replicas": "--replicas",
    "spec.max_replicas": "--replicas",
}
"""Option by field."""
BOUNDS = {"spec.min_replicas": "--min", "spec.max_replicas": "--max"}
"""Where the two were given apart."""


@contextmanager
def naming_options(options: Mapping[str, str]) -> Generator[None]:
    """Around a call to the gateway: what it refuses names options. Raises Refused."""
    try:
        yield
    except Refused as refused:
        raise Refused(refused.status, in_options(str(refused), options), refused.param) from refused


def in_options(sentence: str, options: Mapping[str, str]) -> str:
    """A sentence that names fields, with options in their place.

    A field is known by its backticks or its folder's name; without either where it is no English word.
    """
    for field in sorted(options, key=len, reverse=True):
        option, last = options[field], field.rpartition(".")[2]
        forms = [f"`{re.escape(field)}(?P<inner>(?:\\.[^`\\s]+)?)`"]
        if "." in field:
            forms.append(rf"(?<![\w./-]){re.escape(field)}(?P<inner>)(?![\w/-])")
        if "_" in last:
            forms.append(rf"(?<![\w./-]){re.escape(last)}(?P<inner>(?:\.\w+)?)(?![\w/-])")
        for form in forms:
            sentence = re.sub(form, partial(_option, option), sentence)
    return sentence


def _option(option: str, found: re.Match[str]) -> str:
    """With the part of the field that was at fault, such as one of several arguments."""
    return option + found["inner"].replace(".", " ", 1)
