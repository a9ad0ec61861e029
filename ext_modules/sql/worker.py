"""Queries and changes databases, in a separate process that can be killed.

SQLite files are opened by Python's own library, everything else by DuckDB, which also reads CSV, Parquet and JSON files
as tables. Neither loads an extension, attaches a data base or opens a file outside of the workspace: SQLite asks its
authorizer about each step of a statement, DuckDB's parser names what each statement is, and its settings, which no
statement can change, name the one folder. This code does not enforce that a query writes nothing: a query runs where
nothing can be written.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from ext_modules.sdk.apart import NotDone, inside, serve
from ext_modules.sdk.values import JSON

_SQLITE: Final = b"SQLite format 3\0"
_SQLITE_NAMES: Final = (".sqlite", ".sqlite3", ".db", ".db3")
_TABLE_FILES: Final = (".csv", ".tsv", ".parquet", ".json", ".ndjson", ".jsonl", ".csv.gz")
_WIDEST: Final = 300
"""The most characters of one value in a table for reading."""
_LARGEST: Final = {"table": 200_000, "csv": 8_000_000, "json": 8_000_000}
"""The most characters that are returned."""
_ALL: Final = {"table": 100, "csv": 100_000, "json": 100_000}
"""How many rows are given if the request doesn't say it."""
_REDIRECTING: Final = frozenset({"temp_store_directory", "data_store_directory", "writable_schema"})
"""Settings of SQLite that put files elsewhere, or let a statement change what the schema says."""
_MOST_TABLES: Final = 100
_MOST_FILES: Final = 12


_ATTACHES: Final = (
    "A call works on one data base, and opens no other file by name. Give the other data base its own call: "
    "form=csv gives its rows as a variable, which from=$name makes the table `data`."
)


class Rows(Protocol):
    """The result of a statement, as both libraries return it."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...

    def fetchmany(self, size: int = ..., /) -> Sequence[Sequence[object]]: ...


def work(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    """Carry out a request: `query`, `run` or `tables`."""
    database = str(request["database"])
    if request["do"] == "tables":
        return {"columns": []}, "".join(described(database)).encode()

    writes = request["do"] == "run"
    statement = str(request["statement"])
    path = inside(database, there=not writes) if database else None
    table = received(request)
    changed: int | None = None
    if path is not None and is_sqlite(path):
        if table is not None:
            raise NotDone("`from` makes a table of DuckDB's; leave `database` out, or name a DuckDB file.")
        rows, changed = in_sqlite(path, statement, writes=writes)
    else:
        rows = in_duckdb(path, statement, writes=writes, table=table)

    form = str(request["form"])
    most = int(str(request["most"]))
    facts, text = given(rows, form, most or _ALL[form])
    wants_all = form != "table" and not most
    if wants_all and not facts["complete"]:
        raise NotDone(
            f"The result is larger than {_ALL[form]:,} rows or {_LARGEST[form]:,} characters, the most that can be given; "
            "take less, or write it to a file: sql.run with COPY (SELECT …) TO 'result.csv'."
        )
    return {**facts, "changed": changed}, text.encode("utf-8", "replace")


def received(request: Mapping[str, JSON]) -> Path | None:
    """The content that came with a request, as a file whose name says what it holds."""
    if "from" not in request:
        return None
    content = Path(f"/proc/self/fd/{request['content']}").read_bytes()
    file = Path(os.environ["TMPDIR"], f"data.{kind_of(content, str(request['from']))}")
    file.write_bytes(content)
    return file


def kind_of(content: bytes, media: str) -> str:
    """What a table is written in: csv, json or parquet. What it looks like decides where the type says nothing."""
    if content.startswith(b"PAR1"):
        return "parquet"

    looks_like_json = content.lstrip()[:1] in (b"[", b"{")
    if "json" in media or (media != "text/csv" and looks_like_json):
        return "json"
    return "csv"


def is_sqlite(path: Path) -> bool:
    """Whether a database is SQLite's. The name decides for a database that does not exist yet."""
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    return path.name.lower().endswith(_SQLITE_NAMES)


def in_sqlite(path: Path, statement: str, *, writes: bool) -> tuple[Rows | None, int | None]:
    """Return the rows of the last statement, if it has any, and how many rows were changed."""
    connection = sqlite(path, writes=writes)
    if not writes:
        return _queried(connection, statement), None

    rows: Rows | None = None
    before = connection.total_changes
    try:
        with connection:  # all statements or none
            for single in statements(statement):
                rows = connection.execute(single)
    except sqlite3.DatabaseError as error:
        raise _said(error) from None
    return rows, connection.total_changes - before


def _queried(connection: sqlite3.Connection, statement: str) -> Rows:
    try:
        return connection.execute(statement)
    except sqlite3.OperationalError as error:
        if "readonly" in str(error):
            raise NotDone("sql.query only reads; sql.run changes a data base.") from None
        raise
    except sqlite3.DatabaseError as error:
        raise _said(error) from None


def _said(error: sqlite3.DatabaseError) -> Exception:
    """The error, or what to do instead if the authorizer caused it."""
    refused = "not authorized" in str(error) or "authorization denied" in str(error)
    return NotDone(_ATTACHES) if refused else error


def sqlite(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open a connection. A read-only connection does without a lock where none can be made."""
    mode = "rwc" if writes else "ro"
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=10)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        if writes:
            raise
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        connection.execute("PRAGMA trusted_schema=OFF")

    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 64 << 20)
    connection.set_authorizer(_authorized)
    return connection


def _authorized(
    action: int, first: str | None, second: str | None, _where: str | None, _by: str | None
) -> int:
    """Whether SQLite may carry out a step of a statement: not if it opens a file besides the data base."""
    # VACUUM attaches an unnamed temporary file of its own; VACUUM INTO names one.
    attaches = action == sqlite3.SQLITE_ATTACH and first != ""
    loads = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension"
    redirects = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _REDIRECTING
    return sqlite3.SQLITE_DENY if attaches or loads or redirects else sqlite3.SQLITE_OK


def statements(text: str) -> Iterator[str]:
    """Split a script into its statements."""
    # Not every semicolon ends one: a text or a trigger may contain some.
    statement = ""
    for piece in text.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            if statement.removesuffix(";").strip():
                yield statement
            statement = ""

    if statement.strip("; \n\t"):
        yield statement


def in_duckdb(path: Path | None, statement: str, *, writes: bool, table: Path | None) -> Rows | None:
    """Return the rows of the last statement. `table`: the file that is the table `data`."""
    import duckdb as library

    connection = duckdb(path, writes=writes, table=table)
    try:
        kinds = [parsed.type for parsed in library.extract_statements(statement)]
        if library.StatementType.ATTACH in kinds:
            raise NotDone(_ATTACHES)
        connection.execute(statement)
    except library.Error as error:
        raise NotDone(f"{str(error).strip()[:2000]}{_hint(str(error))}") from None
    return connection if connection.description else None


def _hint(message: str) -> str:
    """What to write instead, after an error of DuckDB's."""
    if "does not exist" in message and "Table" in message:
        files = sorted(file.name for file in Path().glob("*") if file.name.lower().endswith(_TABLE_FILES))
        there = f" There are: {', '.join(files[:_MOST_FILES])}." if files else ""
        return (
            "\nFiles are tables by their names in quotes, as FROM 'orders.csv'; a variable is `data`, with from=$name; "
            f"a sheet of a workbook comes as CSV from docs.tables.{there}"
        )
    if "read-only" in message:
        return "\nsql.query only reads; sql.run writes."
    return ""


def duckdb(path: Path | None, *, writes: bool, table: Path | None = None) -> DuckDB:
    """Open a connection that loads no extensions and opens nothing outside of the workspace.

    `table`: a file outside of it, read now as the table `data`.
    """
    import duckdb as library

    try:
        connection: DuckDB = library.connect(
            str(path) if path else ":memory:",
            read_only=path is not None and not writes,
            config={
                "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
                "allow_community_extensions": "false", "memory_limit": "448MB", "threads": "2",
                "temp_directory": os.environ["TMPDIR"], "max_temp_directory_size": "128MB",
            },
        )  # fmt: skip
    except library.IOException as error:
        if path is None or "not a valid DuckDB" not in str(error):
            raise
        raise NotDone(
            f"{path.name} is not a data base: SQLite and DuckDB files are, and CSV, Parquet and JSON files are tables. "
            "docs.tables reads documents."
        ) from None

    # Before the connection may read nothing but the workspace.
    if table is not None:
        source = str(table).replace("'", "''")
        connection.execute(f"CREATE TEMP TABLE data AS SELECT * FROM '{source}'")

    connection.execute(f"SET allowed_directories=['{os.getcwd()}/']")
    for setting in ("enable_external_access=false", "lock_configuration=true"):
        connection.execute(f"SET {setting}")
    return connection


class DuckDB(Rows, Protocol):
    """The part of DuckDB's connection that is used."""

    def execute(self, statement: str, /) -> object: ...


def given(rows: Rows | None, form: str, most: int) -> tuple[Mapping[str, JSON], str]:
    """Return facts about the rows, and the rows in the requested form."""
    if rows is None or not rows.description:
        return {"rows": 0, "columns": [], "complete": True}, ""

    columns = [str(column[0]) for column in rows.description]
    fetched = list(rows.fetchmany(most + 1))
    is_complete = len(fetched) <= most
    taken = fetched[:most]
    text = _FORMS[form](columns, taken)
    while taken and len(text) > _LARGEST[form]:
        taken = taken[: len(taken) // 2]
        is_complete = False
        text = _FORMS[form](columns, taken)

    names: list[JSON] = [*columns]
    return {"rows": len(taken), "columns": names, "complete": is_complete}, text


def as_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format as Markdown."""
    lines = [[_cell(column) for column in columns], ["---"] * len(columns)]
    lines += [[_cell(value) for value in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value):,} bytes"
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= _WIDEST else text[:_WIDEST] + "…"


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format as CSV, with a header line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def as_json(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format as a JSON list of objects."""
    return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str, ensure_ascii=False)


_FORMS: Final = {"table": as_table, "csv": as_csv, "json": as_json}


def described(name: str) -> Iterator[str]:
    """Describe the tables of a database, or the columns of a data file."""
    path = inside(name)
    if path.name.lower().endswith(_TABLE_FILES):
        source = _text(str(path))
        yield from _columns(duckdb(None, writes=False), name, source, f"DESCRIBE SELECT * FROM {source}")
    elif is_sqlite(path):
        yield from _described_sqlite(path)
    else:
        yield from _described_duckdb(path)


def _described_sqlite(path: Path) -> Iterator[str]:
    connection = sqlite(path, writes=False)
    listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
    tables = [str(row[0]) for row in connection.execute(listing).fetchall()]
    for table in tables[:_MOST_TABLES]:
        columns = connection.execute(f"SELECT name, type FROM pragma_table_info({_text(table)})").fetchall()
        (count,) = connection.execute(f"SELECT count(*) FROM {_name(table)}").fetchone()
        yield _line(table, int(count), [(str(column), str(kind)) for column, kind in columns])
    yield from _more(len(tables))


def _described_duckdb(path: Path) -> Iterator[str]:
    connection = duckdb(path, writes=False)
    connection.execute("SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2")
    tables = [(str(row[0]), str(row[1])) for row in connection.fetchmany(10 * _MOST_TABLES)]
    for schema, table in tables[:_MOST_TABLES]:
        quoted = f"{_name(schema)}.{_name(table)}"
        shown = table if schema == "main" else f"{schema}.{table}"
        yield from _columns(connection, shown, quoted, f"DESCRIBE {quoted}")
    yield from _more(len(tables))


def _more(count: int) -> Iterator[str]:
    if count > _MOST_TABLES:
        yield f"[{count - _MOST_TABLES:,} more tables; ask information_schema.tables, or sqlite_master, for their names.]\n"


def _columns(connection: DuckDB, shown: str, source: str, describing: str) -> Iterator[str]:
    connection.execute(describing)
    columns = [(str(row[0]), str(row[1])) for row in connection.fetchmany(1000)]
    connection.execute(f"SELECT count(*) FROM {source}")
    yield _line(shown, int(str(connection.fetchmany(1)[0][0])), columns)


def _line(table: str, count: int, columns: Sequence[tuple[str, str]]) -> str:
    listed = ", ".join(f"{_cell(name)} {_cell(kind)}".strip() for name, kind in columns)
    return f"{_cell(table)} ({count:,} rows): {listed}\n"


def _text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def _name(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    serve(work)
