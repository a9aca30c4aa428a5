"""The collector of the records."""

import asyncio
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from weft_observer.happened import Happened
from weft_observer.otlp.record import record
from weft_observer.otlp.settings import OtlpSettings
from weft_observer.outcomes import Later, Refused

SERVICE = "weft-observer"


class Collector:
    """One collector. Each record is exported before the next one: none is acknowledged which it doesn't have."""

    def __init__(self, settings: OtlpSettings, instance: str) -> None:
        self._exporter = OTLPLogExporter(endpoint=settings.address, timeout=settings.otlp_timeout)
        self._resource = Resource.create({"service.name": SERVICE, "service.instance.id": instance})
        self._host = urlsplit(settings.address).hostname

    async def export(self, happened: Happened) -> None:
        """Export one fact. Raises Later, and Refused for what no record can bear, such as a number of 65 bits."""
        read = ReadableLogRecord(record(happened), self._resource, InstrumentationScope("weft"))
        try:
            encode_logs([read])
        except (ValueError, OverflowError, TypeError) as error:
            raise Refused(f"no record can bear it: {error}") from None
        if await asyncio.to_thread(self._exporter.export, [read]) is not LogRecordExportResult.SUCCESS:
            raise Later(f"{self._host} did not take a record")

    async def close(self) -> None:
        """End its connection."""
        await asyncio.to_thread(self._exporter.shutdown)
