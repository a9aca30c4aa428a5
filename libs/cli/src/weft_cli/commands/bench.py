"""`weft bench`: how a model answers many at once, as any client sees it."""

import asyncio
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from weft_client.failure import Exit, Failure

from weft_cli import locate
from weft_cli.bench import load
from weft_cli.bench.figures import Figures
from weft_cli.bench.http_stream import Place
from weft_cli.render import cut, table

MAX_STREAMS = 1024
_REASONS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: each level for `seconds`, each answer at most `tokens` long."""

    model: str
    streams: tuple[int, ...]
    tokens: int
    seconds: float
    prompt: str | None = None
    ignore_eos: bool = False


def levels(text: str) -> tuple[int, ...]:
    """Numbers of streams, as they are typed: `1,8,32`. Raises Failure."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 and 1 <= int(part) <= MAX_STREAMS for part in parts):
        raise Failure(f"--streams {text}: want numbers from 1 to {MAX_STREAMS}, such as 1,8,32", Exit.USAGE)
    return tuple(int(part) for part in parts)


def run(folder: Path | None, url: str | None, plan: Plan, *, as_json: bool) -> None:
    """Measure and print. Raises Failure if the model can't be asked, or answered nothing on some level."""
    base, key, authority = url, locate.key_for(folder, url), None
    if base is None:
        gateway = locate.gateway(folder, None)
        base, key, authority = gateway.url, gateway.key, gateway.authority
    place = Place.of(base, key or os.environ.get("OPENAI_API_KEY"), authority)
    found: list[Figures] = []
    try:
        with asyncio.Runner() as runner:
            question = load.Question(plan.model, plan.tokens, plan.prompt, plan.ignore_eos)
            question = runner.run(load.probe(place, question))
            for streams in plan.streams:
                found.append(runner.run(load.level(place, question, streams, plan.seconds)))
    finally:
        if found:
            _show(place, plan, found, as_json=as_json)
    if silent := [str(each.streams) for each in found if not each.tokens]:
        raise Failure(f"no answer came with {', '.join(silent)} streams")


def _show(place: Place, plan: Plan, found: list[Figures], *, as_json: bool) -> None:
    if as_json:
        head = {"model": plan.model, "server": place.authority, "tokens": plan.tokens, "seconds": plan.seconds}
        print(json.dumps({**head, "levels": [asdict(each) for each in found]}, indent=1))
        return
    table(
        ("streams", "answers", "errors", "tokens/s", "a stream", "first token p50", "p95", "between tokens p50"),
        [
            (
                each.streams,
                each.requests,
                each.errors,
                each.tokens_per_second,
                each.tokens_per_second_and_stream,
                _ms(each.first_token_ms_p50),
                _ms(each.first_token_ms_p95),
                _ms(each.between_tokens_ms_p50),
            )
            for each in found
        ],
    )
    for each in found:
        for reason, times in list(each.reasons.items())[:_REASONS]:
            print(f"{each.streams} streams, {times} times: {cut(reason, 200)}")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"
