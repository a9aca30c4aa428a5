"""The Postgres server's configuration, rendered anew at every start: small, durable, local."""

from dataclasses import dataclass
from pathlib import Path

from weft_servers.port import LOOPBACK

SOCKET_PORT = 5432
"""The number in the socket's name where there is no TCP."""
_WAL_LEAST_MB, _WAL_MOST_MB = 32, 128


@dataclass(frozen=True, slots=True)
class PostgresConf:
    """Where the server answers: in a socket folder of mode 700, and on loopback if `port` is set."""

    socket_folder: Path
    port: int | None = None
    max_connections: int = 30
    disk_free: int | None = None
    """Bytes free on the state's disk at the start, None: plenty. Of little of it the write-ahead log takes less."""

    def render(self) -> str:
        """Return `postgresql.conf`."""
        settings: dict[str, str | int] = {
            "unix_socket_directories": str(self.socket_folder),
            "unix_socket_permissions": "0700",
            "listen_addresses": LOOPBACK if self.port else "",
            "port": self.port or SOCKET_PORT,
            "max_connections": self.max_connections,
            "superuser_reserved_connections": 2,
            "shared_buffers": "16MB",
            "work_mem": "4MB",
            "maintenance_work_mem": "32MB",
            "wal_buffers": "1MB",
            "max_wal_size": f"{self._wal_mb}MB",
            "min_wal_size": "32MB",
            "wal_level": "minimal",  # nobody replicates it: what it holds can be folded again
            "max_wal_senders": 0,
            "max_logical_replication_workers": 0,
            "autovacuum_max_workers": 1,
            "max_worker_processes": 1,
            "max_parallel_workers": 0,
            "max_parallel_workers_per_gather": 0,
            "max_parallel_maintenance_workers": 0,
            "jit": "off",
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "password_encryption": "scram-sha-256",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "lc_messages": "C",
            "log_destination": "stderr",
            "logging_collector": "off",
            "log_checkpoints": "off",
        }
        return "".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items())

    @property
    def _wal_mb(self) -> int:
        """An eighth of what is free, between two segments and eight."""
        return _WAL_MOST_MB if self.disk_free is None else min(max(self.disk_free >> 23, _WAL_LEAST_MB), _WAL_MOST_MB)

    def render_access(self) -> str:
        """Return `pg_hba.conf`: trust for who can enter the socket's folder, on loopback the password."""
        lines = ["local all all trust"]
        if self.port:
            lines.append(f"host all all {LOOPBACK}/32 scram-sha-256")
        return "\n".join(lines) + "\n"


def _quoted(value: str | int) -> str:
    # In a configuration file a quote is doubled and a backslash escapes.
    return str(value) if isinstance(value, int) else "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
