"""Takes a real trace of a mesh and draws it: a deploy and then a chat, through HTTP, log, gRPC and engine.

    python bench/trace.py [docs/trace.svg]

One trace parent for both, as a client that deploys and asks would send. Each process sends its spans by OTLP to a small
collector in this process, as it would to any other.
"""

import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from weft_testing.collector import CollectedSpan, Collector
from weft_testing.story import MeshUnderTest, until

TRACE, CLIENT = "7e" * 16, "00000000000000aa"
TINY = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "llama.cpp"}
LAST = (("weft-gateway", "POST /v1/chat/completions"), ("weft-engine", "submit"))
DEPLOY = "POST /api/models: a request in the log, decided on, placed, started"
CHAT = "POST /v1/chat/completions: by gRPC to the engine; the log hears nothing of it"
WIDTH, LEFT, RIGHT, ROW, TOP = 1000, 380, 90, 22, 34
BETWEEN = 46
"""Above the second part, which has a scale of its own."""
COLOURS = {
    "weft-gateway": "#3b82f6",
    "weft-registry": "#94a3b8",
    "weft-reconciler": "#a855f7",
    "weft-scheduler": "#f59e0b",
    "weft-metadata-cache": "#14b8a6",
    "weft-worker-agent": "#22c55e",
    "weft-engine": "#ef4444",
}
STYLE = """
text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2937 }
.faint { fill: #6b7280 } .head { font-weight: 600; font-size: 13px }
line { stroke: #9ca3af } .page { fill: #ffffff } .even { fill: #9ca3af; opacity: .12 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .faint { fill: #9ca3af } line { stroke: #6b7280 } .page { fill: #0d1117 }
}
"""


def main(target: Path) -> None:
    """Run a mesh, take the trace, write the picture."""
    with (
        Collector() as collector,
        tempfile.TemporaryDirectory(prefix="weft-trace-") as folder,
        MeshUnderTest(Path(folder), WEFT_OTLP_ENDPOINT=collector.url) as mesh,
    ):
        spans = taken(mesh, collector)
    target.write_text(drawn(spans))
    print(f"{len(spans)} spans of {len({span.service for span in spans})} services: {target}")


def taken(mesh: MeshUnderTest, collector: Collector) -> list[CollectedSpan]:
    """Deploy a model, ask it, and wait for all spans."""
    parent = {"traceparent": f"00-{TRACE}-{CLIENT}-01"}
    mesh.ask()  # what is done but once is not what a trace should show
    mesh.deploy("traced", TINY, **parent).raise_for_status()
    until("the model answers", lambda: mesh.ready_replicas("traced"), 60.0)
    mesh.chat("What is the capital of France?", "traced", headers=parent).raise_for_status()

    def whole() -> list[CollectedSpan] | None:
        spans = collector.of_trace(TRACE)
        said = {(span.service, span.name) for span in spans}
        return spans if {*LAST, ("weft-worker-agent", "append run.ready")} <= said else None

    return until("all spans are here", whole, 60.0)


def drawn(spans: Sequence[CollectedSpan]) -> str:
    """An SVG: first all until the chat, then the chat, each to its own scale."""
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    chat = next(span for span in ordered if (span.service, span.name) == LAST[0])
    parts = [
        (DEPLOY, [span for span in ordered if span.start_ns < chat.start_ns]),
        (CHAT, [span for span in ordered if span.start_ns >= chat.start_ns]),
    ]
    y, body = 0, list[str]()
    for heading, own in parts:
        lines, y = _part(heading, own, y)
        body += lines
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 12}" role="img"'
        f' aria-label="One trace through HTTP, log, gRPC and engine"><style>{STYLE}</style>'
        f'<rect class="page" width="{WIDTH}" height="{y + 12}"/>{"".join(body)}</svg>\n'
    )


def _part(heading: str, spans: Sequence[CollectedSpan], y: int) -> tuple[list[str], int]:
    began, ended = min(s.start_ns for s in spans), max(s.end_ns for s in spans)
    scale = (WIDTH - LEFT - RIGHT) / max(1, ended - began)
    lines = [_text(12, y + 22, escape(heading), "head")]
    y += TOP
    for number, span in enumerate(spans):
        x, width = LEFT + (span.start_ns - began) * scale, max(1.5, (span.end_ns - span.start_ns) * scale)
        indent = 12 + 14 * _depth(span, spans)
        colour = COLOURS.get(span.service, "#64748b")
        what = f'{escape(span.service.removeprefix("weft-"))} <tspan class="faint">{escape(span.name)}</tspan>'
        took = f"{(span.end_ns - span.start_ns) / 1e6:,.1f} ms"
        if number % 2 == 0:
            lines.append(f'<rect class="even" x="0" y="{y}" width="{WIDTH}" height="{ROW}"/>')
        lines.append(_bar(indent, y + 6, 9, 9, colour))
        lines.append(_text(indent + 14, y + 15, what, ""))
        lines.append(_bar(x, y + 5, width, ROW - 10, colour))
        lines.append(_text(min(x + width + 5, WIDTH - RIGHT + 8), y + 15, took, "faint"))
        y += ROW
    lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y + 4}" y2="{y + 4}"/>')
    lines.append(_text(LEFT, y + 19, "0", "faint"))
    lines.append(_text(WIDTH - RIGHT, y + 19, f"{(ended - began) / 1e6:,.0f} ms", "faint"))
    return lines, y + BETWEEN


def _text(x: float, y: float, inner: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}">{inner}</text>'


def _bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="2" fill="{colour}"/>'


def _depth(span: CollectedSpan, spans: Sequence[CollectedSpan]) -> int:
    """How many of the same part's spans it stands under."""
    by_id = {each.span_id: each for each in spans}
    depth = 0
    while span.parent_id in by_id:
        span, depth = by_id[span.parent_id], depth + 1
    return depth


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/trace.svg"))
