"""Makes the server hold the topology that contracts declare: creates what is missing, updates what differs.

What is as declared is left alone: the server counts what a stream reserves once more when it is asked for again.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import fields

from nats.aio.client import Client
from nats.js.api import (
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    ObjectStoreConfig,
    StorageType,
    StreamConfig,
)
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, BadRequestError, NotFoundError, ServiceUnavailableError
from weft_contracts import disk
from weft_contracts import topology as t

from weft_eventlog.errors import unavailable

_STORAGE = {"file": StorageType.FILE, "memory": StorageType.MEMORY}
_NAME_IN_USE = 10058
_ANSWER_S = 10.0
_LED_S = 3.0
_TRIES = 4
"""A cluster that elects a leader just then never answers what it was asked meanwhile."""
_NO_PEERS = 10005
_PEERS_S = 10.0
"""Seconds that servers which have just started get to hear of each other: before, they place no copies."""
_SHARES = 4
"""What streams beside the log get of the room: a part of so many each."""
_FILE_LIMITS = {
    **{each.name: each.max_bytes for each in t.STREAMS if each.storage == "file" and each.refuse_when_full},
    **{f"KV_{each.name}": each.max_bytes for each in t.KEY_VALUES if each.storage == "file"},
    **{f"OBJ_{each.name}": each.max_bytes for each in t.OBJECT_STORES if each.storage == "file"},
}
"""What is declared (0: no limit) of each stream that refuses what is new when it is full."""


def stream_config(stream: t.Stream, servers: int) -> StreamConfig:
    """A declared stream as the server takes it; three copies where there are three servers."""
    return StreamConfig(
        name=stream.name,
        subjects=list(stream.subjects),
        storage=_STORAGE[stream.storage],
        discard=DiscardPolicy.NEW if stream.refuse_when_full else DiscardPolicy.OLD,
        deny_delete=stream.deny_delete,
        allow_direct=stream.allow_direct,
        allow_atomic=stream.allow_atomic or None,
        allow_msg_schedules=stream.allow_schedules or None,
        max_msgs_per_subject=1 if stream.last_per_subject else -1,
        max_bytes=stream.max_bytes or -1,
        max_age=stream.max_age or None,
        max_msg_size=stream.max_message_bytes or -1,
        max_consumers=t.MAX_CONSUMERS,
        num_replicas=3 if servers >= 3 and stream.replicated else 1,
        duplicate_window=120 if not stream.last_per_subject else 1,
    )


async def apply_topology(client: Client, servers: int = 1) -> None:
    """Declare every stream, bucket and store. May run as often as one likes, from anywhere. Raises LogUnavailable.

    The limits of bytes of those that are there stay as they are: they are the disk's, see `follow_disk`, or an
    operator's. Where the server answers nothing it begins anew, a few times; so it does while a server of the cluster
    isn't there yet, for `_PEERS_S`.
    """
    js = client.jetstream(timeout=_ANSWER_S)
    loop = asyncio.get_running_loop()
    ends, tries = loop.time() + _PEERS_S, _TRIES
    with unavailable("the topology can't be applied"):
        while True:
            try:
                return await _apply_all(js, servers)
            except TimeoutError:
                tries -= 1
                if not tries:
                    raise
            except APIError as error:
                if error.err_code != _NO_PEERS or loop.time() >= ends:
                    raise
                await asyncio.sleep(0.5)


async def _apply_all(js: JetStreamContext, servers: int) -> None:
    copies = 3 if servers >= 3 else 1
    for stream in t.STREAMS:
        await _apply_stream(js, stream_config(stream, servers))
    for bucket in t.KEY_VALUES:
        await _tolerate_existing_kv(js, bucket, copies)
    for bucket in t.OBJECT_STORES:
        await _tolerate_existing_store(js, bucket, copies)


async def follow_disk(client: Client, free: int) -> None:
    """Set each file stream's limit by what is free on the disk of the (one) server, in bytes.

    Streams that drop what is old at their limit keep none: nothing accepted is lost. Raises LogUnavailable.
    """
    left = disk.room(free)

    def limit(name: str, stored: int) -> int:
        # The log itself comes first: others leave it most of what there is.
        return disk.limit(_FILE_LIMITS[name], stored, left if name == t.EVENTS.name else left // _SHARES)

    await _limit_streams(client, limit)


async def follow_size(client: Client, size: int) -> None:
    """Set each file stream's limit so that all of them fit each server's store of so many bytes; never below what it
    holds. As for the rest `follow_disk`. Raises LogUnavailable."""
    limits = disk.store_limits(size, {n: b for n, b in _FILE_LIMITS.items() if n != t.EVENTS.name}, t.EVENTS.name)
    await _limit_streams(client, lambda name, stored: max(limits[name], stored, 1))


async def _limit_streams(client: Client, limit: Callable[[str, int], int]) -> None:
    """`limit`: by a stream's name and the bytes that it holds."""
    js = client.jetstream(timeout=10)
    with unavailable("the streams' limits can't be set"):
        for name in _FILE_LIMITS:
            info = await js.stream_info(name)
            most = limit(name, info.state.bytes)
            if most != info.config.max_bytes:
                info.config.max_bytes = most
                await js.update_stream(info.config)


async def apply_stream(client: Client, stream: t.Stream, servers: int = 1) -> None:
    """Declare one stream: after a restart that emptied the memory. Raises LogUnavailable."""
    with unavailable(f"the stream {stream.name} can't be made"):
        await _apply_stream(client.jetstream(timeout=10), stream_config(stream, servers))


async def leaderless(client: Client, stream: t.Stream) -> bool:
    """Whether nobody answers for a stream in memory, while the log is answered for. Raises LogUnavailable."""
    js = client.jetstream(timeout=_LED_S)
    with unavailable("the streams can't be asked for"):
        try:
            cluster = (await js.stream_info(stream.name)).cluster
            led = cluster is None or bool(cluster.leader)
        except NotFoundError:
            return False
        except (TimeoutError, ServiceUnavailableError):
            led = False
        if led:
            return False
        log = (await js.stream_info(t.EVENTS.name)).cluster
        return log is None or bool(log.leader)


async def make_anew(client: Client, stream: t.Stream, servers: int = 1) -> None:
    """Throw away what a stream in memory holds, and make it again. Raises LogUnavailable."""
    assert stream.storage == "memory"
    js = client.jetstream(timeout=_ANSWER_S)
    with unavailable(f"the stream {stream.name} can't be made anew"):
        with contextlib.suppress(NotFoundError):
            await js.delete_stream(stream.name)
        await _apply_stream(js, stream_config(stream, servers))


async def apply_durable(client: Client, durable: t.Durable) -> None:
    """Create or update a durable pull consumer of EVENTS. Raises LogUnavailable."""
    config = ConsumerConfig(
        durable_name=durable.name,
        filter_subjects=list(durable.filters),
        ack_wait=durable.ack_wait,
        max_ack_pending=durable.ahead,
        max_waiting=durable.pulls or None,
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE if durable.begin else DeliverPolicy.ALL,
        opt_start_seq=durable.begin or None,
        inactive_threshold=durable.kept_s or None,
    )
    with unavailable(f"the durable {durable.name} can't be made"):
        await client.jetstream(timeout=10).add_consumer(t.EVENTS.name, config)


async def drop_durable(client: Client, durable: t.Durable) -> None:
    """Delete a durable consumer of EVENTS, if it is there. Raises LogUnavailable."""
    with unavailable(f"the durable {durable.name} can't be deleted"), contextlib.suppress(NotFoundError):
        await client.jetstream(timeout=10).delete_consumer(t.EVENTS.name, durable.name)


async def last_sequence(client: Client) -> int:
    """Where the log ends just now. Raises LogUnavailable."""
    with unavailable("the end of the log can't be read"):
        return int((await client.jetstream(timeout=10).stream_info(t.EVENTS.name)).state.last_seq)


async def _apply_stream(js: JetStreamContext, config: StreamConfig) -> None:
    try:
        have = (await js.stream_info(str(config.name))).config
    except NotFoundError:
        try:
            await js.add_stream(config)
            return
        except BadRequestError as error:
            if error.err_code != _NAME_IN_USE:  # else somebody else was first
                raise
        have = (await js.stream_info(str(config.name))).config
    if config.storage is StorageType.FILE:
        config.max_bytes = have.max_bytes
    if any(getattr(have, name) != value for name, value in _said(config)):
        await js.update_stream(config)


def _said(config: StreamConfig) -> list[tuple[str, object]]:
    """What a configuration says; the server chooses the rest."""
    values = [(each.name, getattr(config, each.name)) for each in fields(config)]
    return [(name, value) for name, value in values if value is not None]


async def _tolerate_existing_kv(js: JetStreamContext, bucket: t.Bucket, copies: int) -> None:
    try:
        await js.stream_info(f"KV_{bucket.name}")
    except NotFoundError:
        if bucket.erasable:
            await _apply_stream(js, _erasable(bucket, copies))
            return
        await js.create_key_value(
            KeyValueConfig(
                bucket=bucket.name,
                storage=_STORAGE[bucket.storage],
                max_bytes=bucket.max_bytes or None,
                replicas=copies,
                direct=True,
            )
        )


def _erasable(bucket: t.Bucket, copies: int) -> StreamConfig:
    """As nats-py makes a bucket's stream, except that a message may be deleted for good."""
    return StreamConfig(
        name=f"KV_{bucket.name}",
        subjects=[f"$KV.{bucket.name}.>"],
        storage=_STORAGE[bucket.storage],
        discard=DiscardPolicy.NEW,
        allow_direct=True,
        allow_rollup_hdrs=True,
        max_msgs_per_subject=1,
        max_bytes=bucket.max_bytes or -1,
        num_replicas=copies,
        duplicate_window=120,
    )


async def _tolerate_existing_store(js: JetStreamContext, bucket: t.Bucket, copies: int) -> None:
    try:
        await js.stream_info(f"OBJ_{bucket.name}")
    except NotFoundError:
        try:
            await js.create_object_store(
                bucket.name,
                config=ObjectStoreConfig(bucket=bucket.name, storage=_STORAGE[bucket.storage], replicas=copies),
            )
        except APIError as error:
            if error.err_code != _NAME_IN_USE:
                raise
