"""How a replica lies over devices, as far as somebody fixed it."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Value

MOST_DEVICES = 512
"""That one replica may have: 64 nodes with eight each."""
MOST_NODES_NAMED = 64
_CHOSEN = r"^[^\s:]{1,63}:\d{1,5}$"

Parallel = Annotated[int, Field(ge=1, le=MOST_DEVICES)]
ChosenDevice = Annotated[str, Field(pattern=_CHOSEN)]
"""`node:index`: the node's name or id, and the device as its vendor counts it, from 0."""
NodeNamed = Annotated[str, Field(pattern=r"^[^\s:]{1,63}$")]


class Layout(Value, frozen=True):
    """What of it is fixed; placement keeps to it or says what it lacks. What isn't said is placement's to find."""

    tensor_parallel: Parallel | None = None
    """Devices of a node that share each layer."""
    pipeline_parallel: Parallel | None = None
    """Stages that share the layers, each on as many devices."""
    gpus: Annotated[tuple[ChosenDevice, ...], Field(max_length=MOST_DEVICES)] = ()
    """Devices of which it takes what it needs, and no others; empty: any. In the log nodes stand by their ids."""
    gpus_per_replica: Parallel | None = None
    """A wished number of devices: fewer are taken where they hold it. Of devices that were chosen, so many."""
    preferred_nodes: Annotated[tuple[NodeNamed, ...], Field(max_length=MOST_NODES_NAMED)] = ()
    """Whom a group takes before others. In the log they stand by their ids."""
    distributed: bool | None = None
    """Whether it may span nodes; None: where the engine can."""
    cpu_offload: bool | None = None
    """False: it lies on accelerators and nowhere else. None: on a processor where no accelerator takes it."""

    @property
    def chosen(self) -> dict[str, frozenset[int]]:
        """By node, the numbers of the devices that were chosen there."""
        found: dict[str, set[int]] = {}
        for text in self.gpus:
            node, _, number = text.rpartition(":")
            found.setdefault(node, set()).add(int(number))
        return {node: frozenset(numbers) for node, numbers in found.items()}


ANY_LAYOUT = Layout()
