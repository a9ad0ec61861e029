"""Whether sessions are traced while they run: if the environment names a collector, and what speaks to it is installed.

The variables are those that every program with OpenTelemetry knows; nothing of it is imported without them.
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
"""Variables that name a collector: for all signals, or for traces alone."""
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT: Final = frozenset({"true", "span_only", "span_and_event"})


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a collector."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(environment.get(name) for name in ENDPOINTS)


def with_content(environment: Mapping[str, str]) -> bool:
    """Whether spans are to hold what was said."""
    return environment.get(_CONTENT, "").strip().lower() in _WITH_CONTENT


def open_export() -> OtlpExport:
    """What sends spans to the collector that the environment names.

    Raises:
        UsageError: it names none, or a package is missing.
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
    """What sessions are to be told to, so that they are traced; None: they aren't. At the end the last spans are sent."""
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
