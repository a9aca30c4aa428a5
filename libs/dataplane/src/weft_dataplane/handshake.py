"""The first word of a session: is this the replica that the gateway means?"""

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.host_life import HostLife
from weft_dataplane.limits import NEWEST_VERSION, OLDEST_VERSION


def refuse(hello: pb.Hello, life: HostLife) -> pb.Refusal | None:
    """The reason why a Hello is not welcome, or None. Identity comes before state."""
    here = life.identity
    if hello.oldest_version > NEWEST_VERSION or hello.newest_version < OLDEST_VERSION:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_VERSION,
            message=f"the gateway speaks protocol versions {hello.oldest_version} to {hello.newest_version}, "
            f"this replica {OLDEST_VERSION} to {NEWEST_VERSION}",
        )
    if hello.replica != here.replica:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_WRONG_REPLICA,
            message=f"replica {here.replica} answers here, not {hello.replica}",
        )
    if hello.incarnation != here.incarnation:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_WRONG_INCARNATION,
            message=f"replica {here.replica} runs as incarnation {here.incarnation}, not {hello.incarnation}",
        )
    if here.rank:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_WRONG_REPLICA,
            message=f"this is rank {here.rank} of replica {here.replica}, whose rank 0 answers",
        )
    if hello.revision_digest != here.revision_digest:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_WRONG_REVISION,
            message=f"replica {here.replica} runs revision {here.revision_digest}, not {hello.revision_digest}",
        )
    if life.phase == pb.PHASE_RETIRING:
        return pb.Refusal(
            reason=pb.REFUSAL_REASON_RETIRING, message=f"replica {here.replica} is retiring: choose another one"
        )
    if life.phase != pb.PHASE_READY:
        state = pb.Phase.Name(life.phase).removeprefix("PHASE_").lower()
        why = f": {life.reason}" if life.reason else ""
        return pb.Refusal(reason=pb.REFUSAL_REASON_NOT_READY, message=f"replica {here.replica} is {state}{why}")
    return None


def common_version(hello: pb.Hello) -> int:
    """The newest protocol version that both ends speak."""
    return min(hello.newest_version, NEWEST_VERSION)
