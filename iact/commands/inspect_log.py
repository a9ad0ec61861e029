"""`iact journal inspect`: a session as an Inspect log."""

from __future__ import annotations

from pathlib import Path

from iact.commands import journals
from iact.core.errors import UsageError
from iact.core.stored.blobs import blob_reader
from iact.core.stored.replay import replay
from iact.core.views.text import looks_like_action
from iact.settings import Settings


def write(settings: Settings, journal: str, *, at: int | None, out: str | None) -> int:
    """Write the log of a journal, up to record `at`, to a file or as JSON to standard output.

    Raises:
        UsageError: Inspect is not installed, nothing was said in the session, or the file can't be written.
    """
    try:
        from inspect_ai.log import write_eval_log
        from inspect_ai.log._file import eval_log_json_str

        from iact.faces.inspect.log import log_of
    except ModuleNotFoundError as error:
        raise UsageError("Inspect is not installed. Install it: pip install 'iact[inspect]'.") from error

    if out is not None and Path(out).suffix not in {".eval", ".json"}:
        raise UsageError(f"The name of an Inspect log must end in .eval or .json, unlike {out}.")
    found = replay(journals.find(settings, journal), at=at)
    known = found.view.is_action("/") or looks_like_action
    log = log_of(
        found.records,
        blob_reader(found.path.parent),
        lambda name: known(name) or looks_like_action(name),
    )
    if out is None:
        print(eval_log_json_str(log))
        return 0
    try:
        write_eval_log(log, out)
    except OSError as error:
        raise UsageError(f"The log can't be written to {out}: {error.strerror}.") from error
    return 0
