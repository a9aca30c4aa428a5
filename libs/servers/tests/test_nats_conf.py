"""The server's configuration."""

import json
from pathlib import Path

from weft_identity.grants import ServiceExport
from weft_identity.trust import Account, AccountExports, load_or_make
from weft_servers.nats_conf import Cluster, NatsConf


def test_everything_listens_on_loopback_and_what_is_acknowledged_is_on_the_disk(tmp_path: Path):
    conf = json.loads(NatsConf(tmp_path, 4222, 8222, cluster=Cluster("c", 6222, (6222, 6223))).render())

    assert [conf["listen"], conf["http"]] == ["127.0.0.1:4222", "127.0.0.1:8222"]
    assert conf["cluster"]["listen"] == "127.0.0.1:6222"
    assert conf["cluster"]["routes"] == ["nats://127.0.0.1:6222", "nats://127.0.0.1:6223"]
    assert conf["jetstream"]["sync_interval"] == "always"
    assert conf["max_payload"] == 1 << 20


def test_the_accounts_are_known_by_token_and_no_seed_is_written(tmp_path: Path):
    trust = load_or_make(tmp_path / "trust", AccountExports((ServiceExport("a"),)))

    text = NatsConf(tmp_path, 4222, 8222, operator=trust.operator_mode()).render()
    conf = json.loads(text)

    assert conf["resolver_preload"] == dict(trust.account_tokens)
    assert (conf["operator"], conf["system_account"]) == (trust.operator_token, trust.public(Account.SYS))
    assert not any(file.read_text().strip() in text for file in (tmp_path / "trust").glob("*.seed"))


def test_a_token_that_the_server_has_as_new_is_not_loaded_over_it(tmp_path: Path):
    trust = load_or_make(tmp_path / "trust", AccountExports())
    conf = NatsConf(tmp_path, 4222, 8222, operator=trust.operator_mode())
    workers = trust.public(Account.WORKERS)
    conf.accounts.mkdir()
    stored = conf.accounts / f"{workers}.jwt"

    stored.write_text(trust.with_revocations(Account.WORKERS, {"*": 1}))
    assert workers not in json.loads(conf.render())["resolver_preload"]

    stored.write_text("damaged")
    assert workers in json.loads(conf.render())["resolver_preload"]


def test_the_server_counts_no_reservation_against_a_disk(tmp_path: Path):
    # Else streams made on a large disk keep it from starting on a small one, and can't be made smaller.
    assert json.loads(NatsConf(tmp_path, 4222, 8222).render())["jetstream"]["max_file_store"] >= 1 << 50
