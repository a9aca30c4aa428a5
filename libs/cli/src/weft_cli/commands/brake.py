"""`weft brake lift`: an operator knows that who is silent is gone."""

from pathlib import Path

from weft_client import routes

from weft_cli import locate
from weft_cli.outcome import tell


def lift(folder: Path | None, url: str | None, reason: str, *, as_json: bool) -> None:
    """Lift the brake."""
    answer = routes.lift_brake(locate.gateway(folder, url), reason)
    tell("the brake is lifted: what ran on silent nodes is replaced within seconds", answer, as_json=as_json)
