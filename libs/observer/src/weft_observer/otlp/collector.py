"""The collector of the records."""

import asyncio
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from weft_observer.happened import Happened
from weft_observer.otlp.record import record
from weft_observer.otlp.settings import OtlpSettings
from weft_observer.outcomes import Later

SERVICE = "weft-observer"


class Collector:
    """One collector. Each record is exported before the next one: none is acknowledged which it doesn't have."""

    def __init__(self, settings: OtlpSettings, instance: str) -> None:
        self._exporter = OTLPLogExporter(endpoint=settings.address, timeout=settings.otlp_timeout)
        self._resource = Resource.create({"service.name": SERVICE, "service.instance.id": instance})
        self._host = urlsplit(settings.address).hostname

    async def export(self, happened: Happened) -> None:
        """Export one fact. Raises Later."""
        read = ReadableLogRecord(record(happened), self._resource, InstrumentationScope("weft"))
        if await asyncio.to_thread(self._exporter.export, [read]) is not LogRecordExportResult.SUCCESS:
            raise Later(f"{self._host} did not take a record")

    async def close(self) -> None:
        """End its connection."""
        await asyncio.to_thread(self._exporter.shutdown)
