"""The protocol's bounds: sizes in bytes, times in seconds. Both ends keep them; the sender checks first."""

from typing import Final

OLDEST_VERSION: Final = 1
NEWEST_VERSION: Final = 4

SHAPING_VERSION: Final = 2
"""From here on an engine knows constraints, biases and scores; an older one would pass over them silently."""

OR_JSON_VERSION: Final = 3
"""From here on an engine knows a constraint's `or_json`."""

TEMPLATE_VERSION: Final = 4
"""From here on an engine knows variables for its chat template."""

MAX_FRAME_BYTES: Final = 256 * 1024
MAX_CHUNK_BYTES: Final = 128 * 1024
MAX_VALUE_BYTES: Final = 64 * 1024 * 1024

IDLE_FRAME_S: Final = 1.0
"""An idle session hears a frame this often, with the engine's load."""

SILENCE_S: Final = 5.0
"""A session that heard nothing for this long is lost."""

HANDSHAKE_S: Final = 5.0

Options = list[tuple[str, int]]
NameOptions = list[tuple[str, str]]
"""Options that say whose certificate is demanded: `tls.names_node`."""


def channel_options() -> Options:
    """gRPC options of the side that dials: own connection, no proxy, bounded frames, dead peers noticed."""
    return [
        ("grpc.max_send_message_length", MAX_FRAME_BYTES),
        ("grpc.max_receive_message_length", MAX_FRAME_BYTES),
        ("grpc.enable_http_proxy", 0),  # a proxy in the environment must not see tokens
        ("grpc.use_local_subchannel_pool", 1),  # one session, one socket: none waits behind another's bytes
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def server_options() -> Options:
    """gRPC options of the engine's side: bounded frames, a dead gateway is noticed within 15 seconds."""
    return [
        ("grpc.max_send_message_length", MAX_FRAME_BYTES),
        ("grpc.max_receive_message_length", MAX_FRAME_BYTES),
        ("grpc.so_reuseport", 0),  # a port that is taken is an error, never shared with another replica
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ]
