"""A card names where else a file lies by a source's key for this file alone."""

import pytest
from weft_contracts.facts.source import HfSource, S3Source
from weft_contracts.source_keys import source_key
from weft_sources.elsewhere import addresses_elsewhere
from weft_sources.settings import SourceSettings


def test_a_hubs_file_is_asked_for_at_its_commit() -> None:
    key = source_key(HfSource(repository="o/m", revision="a" * 40, file="config.json"))

    (found,) = addresses_elsewhere(key, 2, SourceSettings(hub="https://hub.example"))

    assert (f"https://hub.example/o/m/resolve/{'a' * 40}/config.json", "hub") == (found.url, found.redirects)
    assert () == addresses_elsewhere(key, 2, SourceSettings(offline=True))


@pytest.mark.parametrize("key", ["one/config.json", "config.json"])
def test_a_buckets_object_is_asked_for_by_its_whole_key(key: str) -> None:
    named = source_key(S3Source(bucket="models", key=key, endpoint="https://s3.example"))

    (found,) = addresses_elsewhere(named, 2, SourceSettings())

    assert f"https://s3.example/models/{key}" == found.url


@pytest.mark.parametrize(
    "key",
    ["/m/config.json", "https://x.example/config.json", "builtin:tiny", "", "hf:", "hf:o/m", "s3://models/", "x y"],
)
def test_what_names_no_file_of_a_hub_or_a_bucket_has_no_address(key: str) -> None:
    assert () == addresses_elsewhere(key, 2, SourceSettings())
