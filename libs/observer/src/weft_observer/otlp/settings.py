"""Settings of the export. Headers and certificates are OpenTelemetry's own: `OTEL_EXPORTER_OTLP_HEADERS`, ..."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field
from weft_runtime.settings import HTTP_URL

from weft_observer.settings import ObserverSettings


class OtlpSettings(ObserverSettings):
    """Where log records go."""

    otlp_endpoint: Annotated[str, Field(pattern=HTTP_URL)]
    """A collector, by OTLP over HTTP, such as `http://127.0.0.1:4318`; without a path, `/v1/logs` is added."""
    otlp_timeout: Annotated[float, Field(ge=0.1, le=120)] = 10.0
    """Seconds that one export may take, with the tries of OpenTelemetry's own exporter."""

    @property
    def address(self) -> str:
        """Where records are posted to."""
        given = self.otlp_endpoint
        return given if urlsplit(given).path.strip("/") else given.rstrip("/") + "/v1/logs"
