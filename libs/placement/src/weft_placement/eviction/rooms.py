"""Room that was made for a replica is counted as taken, for everybody but that replica."""

from weft_fleet import ReplicaView

from weft_placement.planned_fleet import PlannedFleet


def hold_rooms(planned_fleet: PlannedFleet, now: float) -> None:
    """Plan all that wait for their room where it is. `now`: seconds since the epoch."""
    fleet = planned_fleet.fleet
    for id in fleet.rooms:
        hold_room(planned_fleet, fleet.replicas[id], now)


def hold_room(planned_fleet: PlannedFleet, replica: ReplicaView, now: float) -> None:
    """Plan a replica where its room is, as long as that is kept for it."""
    room = planned_fleet.fleet.rooms.get(replica.id)
    if room is not None and now < room.until:
        planned_fleet.plan(replica, room.members, replica.cause)


def give_room(planned_fleet: PlannedFleet, replica: ReplicaView) -> None:
    """Look at the nodes as the replica itself does that its room is kept for."""
    room = planned_fleet.fleet.rooms.get(replica.id)
    if room is not None:
        planned_fleet.withdraw(replica.id, room.members)
