"""`iact journal spans`: a session as a trace, printed or sent to a collector."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from iact.core.errors import IactError
from iact.core.stored.journals import read_records
from iact.faces.otel.live import BATCH
from iact.faces.otel.span import Span, nanoseconds
from iact.faces.otel.spans import spans
from iact.tracing import open_export


def show(path: Path, *, content: bool) -> int:
    """Print the spans of a session as JSON.

    Raises:
        JournalError: the journal can't be read.
    """
    made = spans(read_records(path), content=content)
    print(json.dumps([one.to_json() for one in made], ensure_ascii=False, indent=2))
    return 0


def send(path: Path, *, content: bool) -> int:
    """Send the spans of a session to the collector that the environment names.

    Unfinished spans are ended at the last record and marked as unfinished, because a trace without its upper spans is
    useless. If the session continues, the same spans are sent again under the same ids.

    Raises:
        UsageError: no collector is named, or a package is missing.
        IactError: the collector does not accept the spans.
        JournalError: the journal can't be read.
    """
    export = open_export()
    records = read_records(path)
    made = spans(records, content=content)
    last = max((nanoseconds(one.at) for one in records), default=0)
    ended = [one if one.end is not None else _unfinished(one, last) for one in made]
    try:
        for start in range(0, len(ended), BATCH):
            if not export.send(ended[start : start + BATCH]):
                raise IactError(
                    f"The collector did not accept the spans; {start} of {len(ended)} were sent before that. Check "
                    "OTEL_EXPORTER_OTLP_ENDPOINT and that the collector is running, then try again. This creates no "
                    "duplicates, because each span keeps its id."
                )
    finally:
        export.close()
    print(f"Sent {len(ended)} spans, trace {ended[0].trace_id}." if ended else "Sent 0 spans.")
    return 0


def _unfinished(span: Span, last: int) -> Span:
    return replace(span, end=max(span.start, last), attributes={**span.attributes, "iact.unfinished": True})
