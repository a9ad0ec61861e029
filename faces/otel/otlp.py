"""Sends spans by OTLP over HTTP to `OTEL_EXPORTER_OTLP_ENDPOINT`. Only this module needs the packages of the extra `otel`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.trace import SpanKind as OtelKind

from iact.faces.otel.span import Span, SpanKind

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_KINDS: Final[dict[SpanKind, OtelKind]] = {"internal": OtelKind.INTERNAL, "client": OtelKind.CLIENT}
_SCOPE: Final = InstrumentationScope("iact.faces.otel")


class OtlpExport:
    """Sends requests to a collector. Its address, headers, timeout and certificates come from the usual `OTEL_…` variables."""

    def __init__(self) -> None:
        # Its messages about each attempt are replaced by one message here that says what to do.
        logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
        self._exporter = OTLPSpanExporter()
        self._resource = _resource()

    def send(self, spans: Sequence[Span]) -> bool:
        """Send ended spans and return whether the collector accepted them. Blocks."""
        made = [_readable(one, self._resource) for one in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Send nothing more. A pending retry is dropped."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _resource() -> Resource:
    """The resource of the spans, from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`."""
    given = Resource.create({})
    named = not str(given.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return given if named else given.merge(Resource({SERVICE_NAME: "iact"}))


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        events=[Event(one.name, one.attributes, one.at) for one in span.events],
        links=[Link(_context(one.trace_id, one.span_id)) for one in span.links],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR) if span.error else Status(StatusCode.UNSET),
        start_time=span.start,
        end_time=span.end,
        instrumentation_scope=_SCOPE,
    )


def _context(trace: str, span: str) -> SpanContext:
    return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=_SAMPLED)
