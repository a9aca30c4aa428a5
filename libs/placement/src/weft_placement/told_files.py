"""What nodes told of a demand's files, so that those which told the same are asked as one."""

from collections.abc import Callable, Collection, Hashable, Iterable

from weft_contracts.digest import lora_key
from weft_fleet.node_view import looked_at

from weft_placement.demand import Demand
from weft_placement.node_index import NodeIndex
from weft_placement.node_record import NodeRecord

Telling = tuple[Hashable, ...]
"""Whether they have what nodes fetch, and their answers about each source."""
_NOTHING: Telling = ()

Tells = Callable[[Collection[NodeRecord]], Iterable[tuple[Telling, Collection[NodeRecord]]]]


def told_files(demand: Demand, index: NodeIndex) -> Tells:
    """Divides nodes by what they told of this demand's files. Cost: nothing where none told of any, else a look at each
    node."""
    beside = (*(lora_key(each) for each in demand.spec.adapters), *((demand.draft,) if demand.draft else ()))
    sources = (demand.source, *beside)
    keys = [key for source in sources for key in (looked_at(source, demand.spec.engine), source)]
    answers = [index.told[key] for key in keys if key in index.told]
    there = index.fetched.get(demand.files, {}) if demand.files else {}
    if not answers and not there:
        return lambda records: ((_NOTHING, records),)

    def divided(records: Collection[NodeRecord]) -> Iterable[tuple[Telling, Collection[NodeRecord]]]:
        found: dict[Telling, list[NodeRecord]] = {}
        for each in records:
            telling = (each.id in there, *(told.get(each.id) for told in answers))
            found.setdefault(telling, []).append(each)
        return found.items()

    return divided
