"""Keeps an engine on one NUMA node's processors.

Nothing is asked of its memory: a page comes from the node of the processor that touches it first, and from another
one when that node is full, which is what a preference for the node's memory would say. Pages of files that somebody
else read before stay where they lie.
"""

import logging
import os

from weft_contracts.processors import as_list, listed

from weft_engine.launch import NumaBinding

log = logging.getLogger("weft.engine")


def bind(binding: NumaBinding) -> bool:
    """Keep this thread, and all threads and processes that it starts from now on, on a node's processors.

    A binding that this system doesn't take is said and passed over: the engine runs as well, only slower. False then.
    """
    try:
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, listed(binding.processors) & allowed)
    except AttributeError:
        _passed_over(binding, "this system binds no process")
    except (OSError, ValueError) as error:  # none of them is left to this process, or is there any more
        _passed_over(binding, str(error))
    else:
        there = as_list(os.sched_getaffinity(0))
        log.info("bound to a NUMA node", extra={"numa_node": binding.node, "processors": there})
        return True
    return False


def _passed_over(binding: NumaBinding, why: str) -> None:
    told = {"numa_node": binding.node, "processors": binding.processors, "reason": why}
    log.warning("not bound to its NUMA node", extra=told)
