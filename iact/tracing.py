"""Live tracing of sessions, if the environment names a collector and the OpenTelemetry packages are installed.

The variables are the standard ones of OpenTelemetry. Without them, none of its packages is imported.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from iact.core.errors import UsageError
from iact.core.session.runtime import Observe

if TYPE_CHECKING:
    from iact.faces.otel.otlp import OtlpExport

_LOG: Final = logging.getLogger(__name__)
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables that name a collector: for all signals, or only for traces."""
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT: Final = frozenset({"true", "span_only", "span_and_event"})


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a collector."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(environment.get(name) for name in ENDPOINTS)


def with_content(environment: Mapping[str, str]) -> bool:
    """Whether spans include what was said."""
    return environment.get(_CONTENT, "").strip().lower() in _WITH_CONTENT


def open_export() -> OtlpExport:
    """Return the exporter that sends spans to the collector that the environment names.

    Raises:
        UsageError: the environment names no collector, or a package is missing.
    """
    if not is_wanted(os.environ):
        raise UsageError(
            "No collector is named. Set OTEL_EXPORTER_OTLP_ENDPOINT to its address, for example "
            "http://localhost:4318 if one runs on this machine."
        )
    try:
        from iact.faces.otel.otlp import OtlpExport
    except ImportError as error:
        raise UsageError(
            f"Spans can't be sent, because a package is missing ({error.name}). Install it: pip install 'iact[otel]'."
        ) from error
    return OtlpExport()


@asynccontextmanager
async def tracing() -> AsyncIterator[Observe | None]:
    """Yield the observer that traces sessions, or None if they are not traced. The last spans are sent at the end."""
    if not is_wanted(os.environ):
        yield None
        return
    try:
        export = open_export()
    except UsageError as error:
        _LOG.warning("Sessions are not traced. %s", error)
        yield None
        return
    from iact.faces.otel.live import SpanSender

    sender = SpanSender(export, content=with_content(os.environ))
    try:
        yield sender.follow
    finally:
        await asyncio.to_thread(sender.close)
