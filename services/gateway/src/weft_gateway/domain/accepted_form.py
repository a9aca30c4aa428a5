"""Whether a client wants a page or data, by its `Accept` (RFC 9110, 12.5.1)."""


def wants_html(accept: str | None) -> bool:
    """True where HTML is named, and no JSON form is liked better. `*/*` alone is a program: it gets data."""
    html = json = 0.0
    for part in (accept or "").lower().split(","):
        media_type, _, parameters = part.partition(";")
        match media_type.strip():
            case "text/html" | "application/xhtml+xml":
                html = max(html, _weight(parameters))
            case "application/json" | "text/json":
                json = max(json, _weight(parameters))
            case _:
                pass
    return html > 0.0 and html >= json


def _weight(parameters: str) -> float:
    """`q`, from 0 to 1; what can't be read counts as nothing."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
