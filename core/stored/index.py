"""What lists and searches of many sessions need, stored next to the journals: a cache, never the truth.

One SQLite file, `index.sqlite`, in the data directory:

    listed    what a list shows of a session, with the stamp of the files that it was read from
    texts     how much of a session's journal is indexed
    passages  each message, reply and output, with its session, record and agent
    words     their texts, in SQLite's full-text index FTS5

All of it follows from the journals and is made again from them if the file is missing or damaged, or was made by
another version or with another key of the seals. An entry counts only as long as the journal's size, time and file
number are unchanged. The index never decides what a session may do. If the file can't be written, lists and searches
work without it, more slowly.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from iact.core.errors import JournalError
from iact.core.journal.file import FILE as JOURNAL
from iact.core.journal.file import read_blob
from iact.core.journal.reader import Reader
from iact.core.records.calls import Result
from iact.core.records.dialogue import Reply, Turn, Upload
from iact.core.records.record import GENESIS, Record
from iact.core.stored.listing import FileStamp, SessionInfo, stamps

_LOG: Final = logging.getLogger(__name__)

FILE: Final = "index.sqlite"
_VERSION: Final = "3"
_LONGEST: Final = 20_000
"""How many characters of one message or output are searched."""
_TOGETHER: Final = 200
"""How many sessions are indexed between two commits."""
_ROUND: Final = 4_000
"""How many passages are examined at a time, the newest first."""
_ROUNDS: Final = 25
_SILENT: Final = frozenset({"recall", "module", "discard", "gate", "clearance", "state", "close", "draft"})
"""Kinds of records whose text no one wrote, or whose text is also in another record."""

_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS listed (
    {", ".join(f"s_{one.name} INTEGER" for one in fields(FileStamp))},
    {", ".join(f'"{one.name}"' for one in fields(SessionInfo))}, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (
    key INTEGER PRIMARY KEY, id TEXT UNIQUE, file INTEGER, size INTEGER, offset INTEGER, last INTEGER, digest TEXT);
CREATE TABLE IF NOT EXISTS passages (key INTEGER PRIMARY KEY, session INTEGER, n INTEGER, agent TEXT, kind TEXT);
CREATE INDEX IF NOT EXISTS passages_session ON passages (session);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, tokenize = "unicode61 remove_diacritics 2");
"""
_TABLES: Final = ("meta", "listed", "texts", "passages", "words")

_STAMP: Final = len(fields(FileStamp))
_TRUTHS: Final = [place for place, one in enumerate(fields(SessionInfo)) if one.type == "bool"]
"""Boolean columns, which SQLite stores as numbers."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """The newest place in a session that matches a search. `count`: how many matches there were among the passages
    examined.

    `before`, `match`, `after`: the line, with the words found in `match`.
    """

    session: str
    n: int
    agent: str
    kind: str
    before: str
    match: str
    after: str
    count: int


@dataclass(frozen=True, slots=True)
class TextHits:
    """Matches in the texts of one host: the newest place of each session. `behind`: how many sessions are not indexed
    yet."""

    hits: tuple[SearchHit, ...] = ()
    behind: int = 0


class Index:
    """The index of one data directory. All methods block, and may be called from any thread."""

    def __init__(self, data: Path, key: str) -> None:
        """`key`: identifies the key of the seals, without revealing it."""
        self._file: Final = data / FILE
        self._key: Final = key
        self._ready = False
        self._listed: dict[str, tuple[FileStamp, SessionInfo]] | None = None
        self._lock = threading.RLock()
        self._updating = threading.Lock()

    # --- lists (core.stored.listing.Listed) ----------------------------------------------------

    def read(self) -> Mapping[str, tuple[FileStamp, SessionInfo]]:
        """What lists showed of sessions."""
        with self._lock:
            if self._listed is None:
                nothing: dict[str, tuple[FileStamp, SessionInfo]] = {}
                self._listed = self._ask(_read_listed, nothing)
            return self._listed

    def keep(self, found: Mapping[str, tuple[FileStamp, SessionInfo]], gone: Sequence[str]) -> None:
        """Keep what was just found, and remove sessions that no longer exist."""

        def write(database: sqlite3.Connection) -> None:
            database.executemany("DELETE FROM listed WHERE id = ?", [(session,) for session in gone])
            marks = ", ".join("?" for _ in range(_STAMP + len(fields(SessionInfo))))
            rows = [_row(*stamped) for stamped in found.values()]
            database.executemany(f"INSERT OR REPLACE INTO listed VALUES ({marks})", rows)

        with self._lock:
            kept = {session: stamped for session, stamped in self.read().items() if session not in gone}
            self._listed = {**kept, **found}
            self._ask(write, None)

    # --- text -----------------------------------------------------------------------------------

    def update(self, sessions: Path, *, most: float = 0) -> int:
        """Index what is new in the journals of the directory `sessions`. Returns how many sessions are left to be
        indexed.

        `most`: seconds after which it stops, after at least one session; 0 for no limit. The oldest come first, so that
        the newest text is found first.
        """
        with self._updating:
            nothing: dict[str, tuple[int, int]] = {}
            known = self._ask(_read_texts, nothing)
            there = {name: stamp for name, stamp in stamps(sessions) if stamp.size >= 0}
            gone = [session for session in known if session not in there]
            if gone:
                self.forget(gone)

            behind = sorted(
                name
                for name, stamp in there.items()
                if known.get(name, (0, 0))[:2] != (stamp.file, stamp.size)
            )
            end = time.monotonic() + most if most else None
            together = _TOGETHER if end is None else 8
            done = 0
            while done < len(behind):
                if done and end is not None and time.monotonic() >= end:
                    break

                part = behind[done : done + together]
                self._ask(partial(_take_in, sessions=sessions, names=part, there=there), None)
                if not self._ready:  # the file can't be used now, so nothing was taken in
                    break
                done += len(part)
            return len(behind) - done

    def search(self, words: str, *, limit: int) -> list[SearchHit]:
        """Sessions that have all these words in one message or output, those with the newest match first.

        Words match by prefix; a text in double quotes matches exactly.
        """
        match = query(words)
        return self._ask(lambda database: list(_search(database, match, limit)), []) if match else []

    def forget(self, gone: Iterable[str], *, scrub: bool = False) -> None:
        """Remove sessions. `scrub`: also erase every byte of their text from the file."""
        ids = list(gone)

        def write(database: sqlite3.Connection) -> None:
            for one in ids:
                _forget(database, one)
            database.executemany("DELETE FROM listed WHERE id = ?", [(one,) for one in ids])

        with self._lock:
            if self._listed is not None:
                self._listed = {key: one for key, one in self._listed.items() if key not in ids}
            self._ask(write, None)
        if scrub and ids:
            self._ask(_merge, None)
            self._ask(_shrink, None, alone=True)

    # --- the file -------------------------------------------------------------------------------

    def _ask(
        self, act: Callable[[sqlite3.Connection], _Result], otherwise: _Result, *, alone: bool = False
    ) -> _Result:
        """Run `act` and return its result. A damaged file is made again once; without a usable file return
        `otherwise`. `alone`: it is not part of a transaction."""
        for is_first in (True, False):
            try:
                with self._opened() as database:
                    if alone:
                        return act(database)
                    with database:
                        return act(database)
            except sqlite3.OperationalError as error:  # locked for too long, read-only, or the disk is full
                _LOG.warning("The index %s can't be used now: %s", self._file, error)
                return otherwise
            except sqlite3.DatabaseError as error:
                _LOG.warning("The index %s is damaged and made again: %s", self._file, error)
                self._remove()
                if not is_first:
                    return otherwise
        return otherwise

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=10)) as database:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA synchronous = NORMAL")
            if not self._ready:
                with self._lock:
                    self._prepare(database)
                    self._ready = True
            yield database

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make the tables, if there are none of this version and for this key."""
        self._file.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(_SCHEMA)

        found = dict(database.execute("SELECT name, value FROM meta"))
        wanted = {"version": _VERSION, "key": self._key}
        if found == wanted:
            return

        for table in _TABLES:
            database.execute(f"DROP TABLE {table}")
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO meta VALUES (?, ?)", wanted.items())
        database.commit()

    def _remove(self) -> None:
        self._ready = False
        self._listed = None
        for end in ("", "-wal", "-shm"):
            self._file.with_name(f"{FILE}{end}").unlink(missing_ok=True)


def query(words: str) -> str:
    """Turn words as a person types them into a query in FTS5's language; empty if there is nothing to look for."""
    parts = []
    for phrase, word in re.findall(r'"([^"]*)"|(\S+)', words):
        text = _spread(phrase or word).replace('"', " ").strip()
        if re.search(r"\w", text.replace("_", " ")):
            parts.append(f'"{text}"' if phrase else f'"{text}"*')
    return " ".join(parts)


# --- lists ------------------------------------------------------------------------------------------------


def _read_listed(database: sqlite3.Connection) -> dict[str, tuple[FileStamp, SessionInfo]]:
    found = {}
    for row in database.execute("SELECT * FROM listed"):
        values = list(row[_STAMP:])
        for place in _TRUTHS:
            values[place] = bool(values[place])
        info = SessionInfo(*values)
        found[info.id] = (FileStamp(*row[:_STAMP]), info)
    return found


def _row(stamp: FileStamp, info: SessionInfo) -> tuple[str | int, ...]:
    return tuple(getattr(one, field.name) for one in (stamp, info) for field in fields(one))


# --- text -------------------------------------------------------------------------------------------------

_APART: Final = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f])"
)
"""Scripts without spaces between words: each of their characters counts as a word."""
_TOGETHER_AGAIN: Final = re.compile(rf"(?<={_APART.pattern[1:-1]}) +| +(?={_APART.pattern[1:-1]})")


def _spread(text: str) -> str:
    return _APART.sub(r" \1 ", text)


def _read_texts(database: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    return {name: (file, size) for name, file, size in database.execute("SELECT id, file, size FROM texts")}


def _take_in(
    database: sqlite3.Connection, sessions: Path, names: Sequence[str], there: Mapping[str, FileStamp]
) -> None:
    """Index what is new in the journals of these sessions. `there`: the stamps of their journals."""
    for name in names:
        stamp = there[name]
        key, reader = _place(database, sessions, name, stamp)

        for record, text in _texts(reader):
            passage = (key, record.n, record.agent, record.kind)
            inserted = database.execute(
                "INSERT INTO passages (session, n, agent, kind) VALUES (?, ?, ?, ?)", passage
            )
            database.execute(
                "INSERT INTO words (rowid, text) VALUES (?, ?)", (inserted.lastrowid, _spread(text))
            )

        # A damaged part is not read again until the journal changes.
        state = (stamp.size, reader.offset, reader.last, reader.digest, key)
        database.execute("UPDATE texts SET size = ?, offset = ?, last = ?, digest = ? WHERE key = ?", state)


def _place(
    database: sqlite3.Connection, sessions: Path, name: str, stamp: FileStamp
) -> tuple[int | None, Reader]:
    """The key of a session, and a reader of its journal that begins after what is indexed."""
    reader = Reader(sessions / name / JOURNAL)
    row = database.execute(
        "SELECT key, file, offset, last, digest FROM texts WHERE id = ?", (name,)
    ).fetchone()
    if row is not None:
        key, file, offset, last, digest = row
        if file == stamp.file and offset <= stamp.size:
            reader.offset = offset
            reader.last = last
            reader.digest = digest
            return key, reader
        # Another file has this name, or this one was cut off: all of it is read again.
        _forget(database, name)

    inserted = database.execute(
        "INSERT INTO texts (id, file, size, offset, last, digest) VALUES (?, ?, 0, 0, 0, ?)",
        (name, stamp.file, GENESIS),
    )
    reader.offset = 0
    reader.last = 0
    reader.digest = GENESIS
    return inserted.lastrowid, reader


def _texts(reader: Reader) -> Iterator[tuple[Record, str]]:
    """The searchable texts in the next records, as far as they can be read."""
    written: dict[str, str] = {}
    try:
        for record in reader.read():
            text = _text(record, reader.file.parent)
            if isinstance(record.content, Turn):
                written[record.agent] = record.body
            elif isinstance(record.content, Reply):
                last_turn = written.get(record.agent, "")
                if last_turn.strip() == record.body.strip():
                    continue  # the same words, said a moment ago

            if text.strip():
                yield record, text[:_LONGEST]
    except (JournalError, OSError) as error:
        _LOG.info("not searched from record %d on: %s: %s", reader.last + 1, reader.file, error)


def _text(record: Record, directory: Path) -> str:
    """What can be searched of a record: its body, the name of a file, or the beginning of a long result."""
    if record.kind in _SILENT:
        return ""

    content = record.content
    if isinstance(content, Upload):
        return f"{content.file}\n{record.body}"
    if isinstance(content, Result) and content.blob is not None:
        try:
            return read_blob(directory, content.blob.sha256)[: 4 * _LONGEST].decode("utf-8", "replace")
        except JournalError:
            return ""
    return record.body


def _forget(database: sqlite3.Connection, name: str) -> None:
    row = database.execute("SELECT key FROM texts WHERE id = ?", (name,)).fetchone()
    if row is not None:
        database.execute("DELETE FROM words WHERE rowid IN (SELECT key FROM passages WHERE session = ?)", row)
        database.execute("DELETE FROM passages WHERE session = ?", row)
        database.execute("DELETE FROM texts WHERE key = ?", row)


def _merge(database: sqlite3.Connection) -> None:
    """Merge all parts of the full-text index: only then do the words of deleted texts disappear."""
    database.execute("INSERT INTO words (words) VALUES ('optimize')")


def _shrink(database: sqlite3.Connection) -> None:
    database.execute("VACUUM")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _search(database: sqlite3.Connection, match: str, limit: int) -> Iterator[SearchHit]:
    """The newest match of each session."""
    # Passages are read from the newest on, so many at a time, until there are enough sessions.
    counts: dict[int, int] = {}
    newest: dict[int, int] = {}
    below = 1 << 62
    for _ in range(_ROUNDS):
        rows = database.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (match, below, _ROUND),
        ).fetchall()
        for (key,) in rows:
            (session,) = database.execute("SELECT session FROM passages WHERE key = ?", (key,)).fetchone()
            counts[session] = counts.get(session, 0) + 1
            newest.setdefault(session, key)

        if len(rows) < _ROUND or len(newest) > limit:
            break
        below = rows[-1][0]

    for session, key in [*newest.items()][:limit]:
        (name,) = database.execute("SELECT id FROM texts WHERE key = ?", (session,)).fetchone()
        n, agent, kind = database.execute(
            "SELECT n, agent, kind FROM passages WHERE key = ?", (key,)
        ).fetchone()
        (line,) = database.execute(
            "SELECT snippet(words, 0, char(2), char(3), '…', 16) FROM words WHERE words MATCH ? AND rowid = ?",
            (match, key),
        ).fetchone()
        before, matched, after = _parts(line)
        yield SearchHit(name, n, agent, kind, before, matched, after, counts[session])


def _parts(line: str) -> tuple[str, str, str]:
    """The text before the first match, the match, and the text after it."""
    flat = _TOGETHER_AGAIN.sub("", " ".join(line.split()))
    before, _, rest = flat.partition("\2")
    found, _, after = rest.partition("\3")
    return before, found, after.replace("\2", "").replace("\3", "")
