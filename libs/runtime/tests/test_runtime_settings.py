"""Settings: from the environment, within their ranges, and clear where they are wrong."""

from typing import Annotated

import pytest
from pydantic import Field, model_validator
from weft_runtime.settings import BAD_SETTINGS, ServiceSettings


class Fitting(ServiceSettings):
    least: Annotated[int, Field(ge=0)] = 0
    most: int = 1
    password: Annotated[str, Field(max_length=4)] = ""

    @model_validator(mode="after")
    def _fit(self) -> "Fitting":
        if self.least > self.most:
            raise ValueError("WEFT_LEAST must not be more than WEFT_MOST")
        return self


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HTTP_PORT", "7001")
    monkeypatch.setenv("WEFT_SOMETHING_ELSE", "is passed over")
    assert (7001, "nats://127.0.0.1:4222") == (ServiceSettings().http_port, ServiceSettings().nats_url)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"HTTP_PORT": "70000"}, "WEFT_HTTP_PORT: input should be less than or equal to 65535\n"),
        (
            {"HTTP_PORT": "many"},
            "WEFT_HTTP_PORT: input should be a valid integer, unable to parse string as an integer\n",
        ),
        ({"STOP_TIMEOUT": "0"}, "WEFT_STOP_TIMEOUT: input should be greater than 0\n"),
        ({"LOG_LEVEL": "loud"}, "WEFT_LOG_LEVEL: input should be 'debug', 'info', 'warning' or 'error'\n"),
        ({"LEAST": "2"}, "settings: WEFT_LEAST must not be more than WEFT_MOST\n"),
    ],
)
def test_a_wrong_setting_ends_the_process_with_2_and_one_sentence(
    settings: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"WEFT_{name}", value)
    with pytest.raises(SystemExit) as end:
        Fitting()
    assert (BAD_SETTINGS, says) == (end.value.code, capsys.readouterr().err)


def test_several_wrong_settings_are_all_named_and_no_value_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEFT_HTTP_PORT", "-1")
    monkeypatch.setenv("WEFT_PASSWORD", "hunter2")
    with pytest.raises(SystemExit):
        Fitting()
    said = capsys.readouterr().err
    assert ["WEFT_HTTP_PORT", "WEFT_PASSWORD"] == [line.partition(":")[0] for line in said.splitlines()]
    assert "hunter2" not in said
