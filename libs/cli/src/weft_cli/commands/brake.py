"""`weft brake lift`: an operator knows that who is silent is gone."""

from pathlib import Path

from weft_cli import where


def lift(folder: Path | None, url: str | None, reason: str) -> None:
    """Lift the brake."""
    where.gateway(folder, url).post("/api/brake/lift", {"reason": reason})
    print("the brake is lifted: what ran on silent nodes is replaced within seconds")
