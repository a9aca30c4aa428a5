"""Where the tables for people are: said, or in a file, as containers are given secrets."""

from pathlib import Path

import pytest
from weft_gateway.settings import GatewaySettings
from weft_runtime.settings import BadSetting

URL = "postgresql://weft:s3cret@db/weft"


def test_the_databases_address_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(URL + "\n")
    assert URL == GatewaySettings(postgres_url_file=tmp_path / "url").database()
    assert URL == GatewaySettings(postgres_url=URL).database()
    assert GatewaySettings().database() is None


def test_both_or_a_file_that_isnt_there_is_one_sentence_without_the_address(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="mean the same: set one of them") as both:
        GatewaySettings(postgres_url=URL, postgres_url_file=tmp_path / "url").check()
    with pytest.raises(BadSetting, match=r"WEFT_POSTGRES_URL_FILE: .* can't be read"):
        GatewaySettings(postgres_url_file=tmp_path / "none").check()
    assert "s3cret" not in str(both.value)
