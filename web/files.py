"""Messages about the files of a session: listing them, what changed when, their content, and downloads.

A file is never a page of this server: text is sent as text; a picture, a sound or a film is recognised by its first
bytes and fetched as a download; what can be looked at has a frame (`web.downloads`); everything else is a download.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from iact.core.errors import UsageError
from iact.core.ports import KeptFile
from iact.core.records.record import Record
from iact.core.stored.file_browser import FileBrowser, Files, VersionChange
from iact.core.views.review import counts
from iact.web.downloads import Content, View, shown_html
from iact.web.looks import look_of, view_as
from iact.web.media import media_of
from iact.web.ports import Runtime, Session
from iact.web.safe_text import shortened, visible
from iact.web.shared_view import SharedView
from iact.web.stored_session import StoredSession
from iact.web.wire import answers, requests
from iact.web.zip_stream import zipped

_TOLD: Final = 10_000
"""Files in one answer."""
_CHANGES: Final = 300
"""Calls in one answer about what changed."""
_PATHS: Final = 200
"""Files that are listed for each of them."""
_SHOWN: Final = 2 << 20
"""Bytes of a file that are read for display."""
_HEAD, _TAIL = 200_000, 20_000
_ROWS, _COLUMNS, _CELL = 500, 50, 500
_PACKED: Final = 2 << 30
"""Bytes that are packed into one archive."""

_MOUNTED: Final = "/workspace/"
"""Where agents see the workspace."""
_TABLES: Final = {".csv": ",", ".tsv": "\t"}


class FileMessages:
    """The files of the watched session, for one client."""

    def __init__(self, session: Session, browser: FileBrowser, *, frozen: bool = False) -> None:
        self._session = session
        self.browser = browser
        self._frozen = frozen
        """Whether the session is shown as it was at its last record, so that the present is not shown."""
        self._one = asyncio.Lock()

    @staticmethod
    def of(session: Session, runtime: Runtime) -> FileMessages:
        """The files of `session`."""
        stored = isinstance(session, StoredSession)
        overlay = None if stored else session.effects.folder
        browser = runtime.store.browser(
            session.journal.parent,
            session.view.workspace,
            overlay=overlay,
            foreign=isinstance(session, StoredSession) and bool(session.foreign or session.example),
        )
        frozen = isinstance(session, SharedView) and session.shows.at is not None
        return FileMessages(session, browser, frozen=frozen)

    def _now(self, at: int | None) -> bool:
        """Whether the present is meant, of which nothing but the folder knows."""
        return at is None and not self._frozen

    def records(self, at: int | None) -> Sequence[Record]:
        """All records up to `at`.

        Raises:
            UsageError: there is no such record.
        """
        records = self._session.records()
        if at is not None and at > len(records):
            raise UsageError(f"There is no record {at}; the journal has 1 to {len(records)}.")
        return list(records[:at])

    async def listed(self, at: int | None) -> tuple[Files, dict[str, int]]:
        """The files, and the last record that changed each."""
        records = self.records(at)
        async with self._one:
            files = await asyncio.to_thread(self.browser.look, records, now=self._now(at))
            changed_by = await asyncio.to_thread(self._changed_by, records)

        return files, changed_by

    async def changes(self, at: int | None) -> Sequence[VersionChange]:
        """What each call changed, in order."""
        records = self.records(at)
        async with self._one:
            return await asyncio.to_thread(self.browser.history, records)

    async def found(self, path: str, at: int | None) -> KeptFile:
        """One file."""
        records = self.records(at)
        async with self._one:
            return await asyncio.to_thread(self.browser.find, records, path, now=self._now(at))

    async def named(self, texts: Sequence[requests.Mentioned]) -> list[answers.NamedFiles]:
        """Which words of texts are files, and as of which record."""
        records = self.records(None)
        if self._frozen and not self.browser.keeps:
            return []  # only the present would tell which words are files

        async with self._one:
            return await asyncio.to_thread(lambda: [*self._named(records, texts)])

    def _named(
        self, records: Sequence[Record], texts: Sequence[requests.Mentioned]
    ) -> Iterator[answers.NamedFiles]:
        for text in texts:
            # Where no versions are kept, a word can only lead to what is there now.
            shown = text.at if self.browser.keeps else None
            paths = self.browser.paths(records[: text.at], now=shown is None)

            files: dict[str, str] = {}
            for word in text.words:
                path = word.removeprefix(_MOUNTED).removeprefix("./")
                if path in paths:
                    files[word] = path

            if files:
                yield {"at": text.at, "shown": shown, "files": files}

    async def compared(self, path: str, since: int, at: int | None) -> str:
        """What changed in a file."""
        records = self.records(at)
        async with self._one:
            return await asyncio.to_thread(self.browser.patch, records, path, since)

    def _changed_by(self, records: Sequence[Record]) -> dict[str, int]:
        """The last record that changed each file; empty if that is not kept."""
        try:
            history = self.browser.history(records)
        except UsageError:
            return {}
        return {step.path: change.n for change in history for step in change.paths}


class FilesClient(Protocol):
    """The part of a connection that these messages act on."""

    @property
    def runtime(self) -> Runtime: ...

    def files(self) -> FileMessages: ...

    def offer(self, name: str, content: Content, *, view: View | None = None) -> str: ...


async def list_files(client: FilesClient, message: requests.ListFiles) -> answers.FileList:
    """Answer `files`."""
    files = client.files()
    listed, changed_by = await files.listed(message.at)

    rows: list[answers.FileRow] = [_described(file, changed_by) for file in listed.files[:_TOLD]]
    more = max(0, len(listed.files) - _TOLD) + listed.more
    browser = files.browser
    return {
        "list": rows,
        "more": more,
        "n": listed.n,
        "unkept": listed.unkept,
        "folder": "" if browser.own else str(browser.folder),
        "why": browser.why,
    }


async def list_changes(client: FilesClient, message: requests.ListChanges) -> answers.ChangeList:
    """Answer `files.changes`."""
    changes = await client.files().changes(message.at)
    rows: list[answers.ChangeRow] = [
        {
            "n": change.n,
            "at": change.at,
            "agent": change.agent,
            "function": change.what,
            "paths": [{"path": step.path, "kind": step.kind} for step in change.paths[:_PATHS]],
            "more": max(0, len(change.paths) - _PATHS),
        }
        for change in reversed(changes[-_CHANGES:])
    ]

    return {"list": rows, "earlier": max(0, len(changes) - _CHANGES)}


async def show_file(client: FilesClient, message: requests.ShowFile) -> answers.FileContent:
    """Answer `file`."""
    files = client.files()
    file = await files.found(message.path, message.at)
    shown: answers.FileContent = {"path": file.path, "kind": file.type, "size": file.size, "show": "binary"}
    if file.type == "link":
        target = b"".join(await asyncio.to_thread(lambda: [*files.browser.content(file)]))
        shown["show"] = "link"
        shown["target"] = visible(target.decode("utf-8", "replace"))
        return shown
    if file.type != "file":
        return shown

    start, text, look = await asyncio.to_thread(_beginning, files.browser, file)
    if look is not None:
        shown["look"] = look

    medium = media_of(start)
    if medium is not None:
        shown["show"], shown["media"] = medium
        return shown

    if text is not None:
        await _add_text(shown, file, text)
    return shown


async def _add_text(shown: answers.FileContent, file: KeptFile, text: str) -> None:
    """Add a file's text to the answer, as a table if it is one. `text`: of a large file, its start."""
    if file.size > _SHOWN:
        shown["show"] = "large"
        shown["text"], shown["left_out"] = _cut(text[:_HEAD])
        return

    shown["show"] = "text"
    shown["text"], shown["left_out"] = _cut(text)

    separator = next((mark for ending, mark in _TABLES.items() if file.path.lower().endswith(ending)), "")
    table = await asyncio.to_thread(_table, text, separator) if separator else None
    if table is not None:
        shown["show"] = "table"
        shown["rows"], shown["more_rows"] = table


async def view_file(client: FilesClient, message: requests.ViewFile) -> answers.Download:
    """Answer `file.view`."""
    files = client.files()
    file = await files.found(message.path, message.at)
    start = b""
    look = None
    if file.type == "file":
        start, _, look = await asyncio.to_thread(_beginning, files.browser, file)
    view = view_as(look, file.size)

    name = file.path.rpartition("/")[2]
    if view == "html":
        page = await asyncio.to_thread(shown_html, start)
        return {"href": client.offer(name, page, view=view)}
    return {"href": client.offer(name, lambda: files.browser.content(file), view=view)}


async def find_files(client: FilesClient, message: requests.FindFiles) -> answers.NamedFilesList:
    """Answer `files.find`."""
    return {"list": await client.files().named(message.texts)}


async def compare_file(client: FilesClient, message: requests.CompareFile) -> answers.Difference:
    """Answer `file.diff`."""
    patch = await client.files().compared(message.path, message.since, message.at)
    first, left_out, _ = shortened(patch, head=_HEAD, tail=0)
    added, removed = counts(patch) or (None, None)

    return {"text": visible(first), "left_out": left_out, "added": added, "removed": removed}


async def fetch_file(client: FilesClient, message: requests.FetchFile) -> answers.Download:
    """Answer `file.download`."""
    files = client.files()
    file = await files.found(message.path, message.at)
    if file.type != "file":
        raise UsageError(f"{message.path[:200]!r} is not a file, so it can't be downloaded.")

    name = file.path.rpartition("/")[2]
    return {"href": client.offer(name, lambda: files.browser.content(file))}


async def fetch_all(client: FilesClient, message: requests.FetchAll) -> answers.ArchiveDownload:
    """Answer `files.download`."""
    files = client.files()
    browser = files.browser
    found, _ = await files.listed(message.at)

    packed = [file for file in found.files if file.type == "file"]
    size = sum(file.size for file in packed)
    if not packed:
        raise UsageError("There are no files to download.")
    if size > _PACKED or found.more:
        raise UsageError(
            f"The files take {size / 2**30:.1f} GiB{' and more' if found.more else ''}, too much for "
            f"one archive; the limit is {_PACKED >> 30} GiB. Download single files."
        )

    def archive() -> Iterator[bytes]:
        return zipped((file.path, pieces) for file, pieces in browser.contents(packed))

    href = client.offer(f"{browser.name}.zip", archive)
    left_out = sum(file.type in ("link", "other") for file in found.files)
    return {"href": href, "count": len(packed), "bytes": size, "left_out": left_out}


def _described(file: KeptFile, changed_by: dict[str, int]) -> answers.FileRow:
    row: answers.FileRow = {"path": file.path, "kind": file.type, "size": file.size}
    if file.path in changed_by:
        row["n"] = changed_by[file.path]
    return row


def _beginning(browser: FileBrowser, file: KeptFile) -> tuple[bytes, str | None, answers.Look | None]:
    """The content of a file, as far as it is read for display; as text, if it is any; and what it can be looked at as.

    Blocks: megabytes are read and decoded, once.
    """
    start = _start(browser, file)
    text = _text(start, whole=len(start) >= file.size)
    return start, text, look_of(file.path, "", start, is_text=text is not None)


def _start(browser: FileBrowser, file: KeptFile) -> bytes:
    """The content of a file, as far as it is read for display."""
    parts: list[bytes] = []
    size = 0
    for piece in browser.content(file):
        parts.append(piece)
        size += len(piece)
        if size >= _SHOWN:
            break

    return b"".join(parts)[:_SHOWN]


def _text(start: bytes, *, whole: bool) -> str | None:
    """The text, or None if it is not text. A cut text may end in the middle of a character."""
    if b"\0" in start:
        return None

    try:
        return start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A character takes at most four bytes.
        ends_within_character = error.start > len(start) - 4
        if whole or not ends_within_character:
            return None
        return start[: error.start].decode("utf-8-sig")


def _cut(text: str) -> tuple[str, int]:
    first, left_out, last = shortened(text, head=_HEAD, tail=_TAIL)
    gap = f"\n… {left_out:,} characters are left out here …\n" if left_out else ""
    return visible(first) + gap + visible(last), left_out


def _table(text: str, separator: str) -> tuple[list[list[str]], int] | None:
    """The first rows and columns of a table, or None if it can't be read as one."""
    rows: list[list[str]] = []
    more = 0
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if len(rows) < _ROWS:
                rows.append([visible(cell[:_CELL]) for cell in row[:_COLUMNS]])
            else:
                more += 1
    except csv.Error:
        return None

    return (rows, more) if rows else None
