"""Postgres's configuration."""

from pathlib import Path

import pytest
from weft_servers.postgres_conf import PostgresConf


@pytest.mark.parametrize(("free", "size"), [(None, 128), (64 << 20, 32), (300 << 20, 37), (5 << 30, 128)])
def test_of_a_small_disk_the_write_ahead_log_takes_an_eighth(free: int | None, size: int):
    conf = PostgresConf(Path("/socket"), disk_free=free).render()

    assert f"max_wal_size = '{size}MB'" in conf
    assert "min_wal_size = '32MB'" in conf
