"""Who ends so that a replica without a place gets one: the least of what is idle, and what it makes free is kept."""

from weft_placement.eviction.decide import AskedOf, Eviction, RoomSearch, decide_eviction, room_search_of
from weft_placement.eviction.endable import Endable, anything_spare, endable_for, priority_in
from weft_placement.eviction.in_line import could_use
from weft_placement.eviction.rooms import give_room, hold_room, hold_rooms
from weft_placement.eviction.search import LeastSet, least_set
from weft_placement.eviction.soon import anything_soon
from weft_placement.eviction.uses import uses_of

__all__ = [
    "AskedOf",
    "Endable",
    "Eviction",
    "LeastSet",
    "RoomSearch",
    "anything_soon",
    "anything_spare",
    "could_use",
    "decide_eviction",
    "endable_for",
    "give_room",
    "hold_room",
    "hold_rooms",
    "least_set",
    "priority_in",
    "room_search_of",
    "uses_of",
]
