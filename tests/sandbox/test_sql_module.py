"""The sql module in its sandbox: files are tables, data bases are asked and changed, and a query changes nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.core.modules.client import Attached, Completed
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.inside import Caller, called

pytestmark = either_backend("bubblewrap")

DAYS = "day,rides\nMon,10\nTue,20\nMon,30\n"


@dataclass(frozen=True, slots=True)
class Sql:
    """Both instances of the module, and the folder in which they work."""

    worker: AnyInstance
    viewer: AnyInstance
    files: Path


@pytest.fixture(scope="module")
def sql(loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend) -> Iterator[Sql]:
    (workspace / "days.csv").write_text(DAYS, encoding="utf-8")
    workspace.chmod(0o777)
    worker = loop.run(backend.start(host, "sql", session="one", workspace=workspace))
    viewer = loop.run(backend.start(host, "sql", session="one", workspace=workspace, right="look"))
    yield Sql(worker, viewer, workspace)
    loop.run(viewer.stop())
    loop.run(worker.stop())


def test_files_are_tables_and_data_bases_are_made_changed_and_asked(loop: asyncio.Runner, sql: Sql) -> None:
    async def scenario() -> None:
        async with called(sql.worker) as work, called(sql.viewer) as look:
            grouped = "SELECT day, sum(rides) AS rides FROM 'days.csv' GROUP BY day ORDER BY day"
            assert (
                await look.text("query", statement=grouped)
                == "| day | rides |\n| --- | --- |\n| Mon | 40 |\n| Tue | 20 |\n"
            )
            assert json.loads(await look.text("query", statement=grouped, form="json"))[0] == {
                "day": "Mon",
                "rides": 40,
            }
            first = await look.outcome(
                "query", {"statement": "SELECT * FROM 'days.csv'", "form": "csv", "most": 1}
            )
            assert isinstance(first, Completed)
            assert (first.output, first.media) == ("day,rides\nMon,10\n", "text/csv")
            assert first.data == {"rows": 1, "columns": ["day", "rides"], "complete": False, "changed": None}
            await work.text(
                "run", database="kept.duckdb", statement="CREATE TABLE d AS SELECT * FROM 'days.csv'"
            )
            await work.text("run", statement="COPY (SELECT max(rides) AS m FROM 'days.csv') TO 'max.csv'")
            assert (sql.files / "max.csv").read_text(encoding="utf-8") == "m\n30\n"
            told = await work.text(
                "run",
                database="kept.sqlite",
                statement="CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x;y'), (2, NULL); "
                "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = 1; END;",
            )
            assert told == "Done; 2 rows were changed.\n"
            assert "| 2 |" in await look.text(
                "query", database="kept.sqlite", statement="SELECT count(*) FROM t"
            )
            assert await look.text("tables", path="kept.sqlite") == "t (2 rows): a INTEGER, b TEXT\n"
            assert await look.text("tables", path="kept.duckdb") == "d (3 rows): day VARCHAR, rides BIGINT\n"
            assert (
                await look.text("tables", path="days.csv") == "days.csv (3 rows): day VARCHAR, rides BIGINT\n"
            )

    loop.run(scenario())


def test_what_goes_wrong_is_told(loop: asyncio.Runner, sql: Sql) -> None:
    async def scenario() -> None:
        async with called(sql.viewer) as look:
            assert "no such table: nope" in await look.error(
                "query", database="kept.sqlite", statement="SELECT * FROM nope"
            )
            assert "Files are tables by their names in quotes" in await look.error(
                "query", statement="SELECT * FROM nope"
            )
            assert "There are: " in await look.error("query", statement="SELECT * FROM nope")
            assert "sql.run changes a data base" in await look.error(
                "query", database="kept.sqlite", statement="DELETE FROM t"
            )
            # Whoever asks for a file's form gets all of it, or is told that it is not all.
            assert (await look.text("query", statement="SELECT * FROM range(1234)", form="csv")).count(
                "\n"
            ) == 1235
            assert "COPY (SELECT" in await look.error(
                "query", statement="SELECT * FROM range(200000)", form="csv"
            )
            assert "first 100 rows; most=..." in await look.text(
                "query", statement="SELECT * FROM range(200)"
            )
            assert "| NULL |" in await look.text("query", statement="SELECT NULL AS a")
            assert "syntax error" in await look.error("query", statement="SELEC 1")
            assert "There is no file gone.db" in await look.error("tables", path="gone.db")
            assert "outside of the workspace" in await look.error(
                "query", database="/etc/x.db", statement="SELECT 1"
            )

    loop.run(scenario())


WRITING = {
    "a file": ("", "COPY (SELECT 1) TO 'written.csv'"),
    "a table": ("kept.duckdb", "DELETE FROM d"),
    "a row": ("kept.sqlite", "DELETE FROM t"),
    "another data base": ("kept.sqlite", "ATTACH 'new.sqlite' AS n"),
    "an attached one": ("", "ATTACH 'other.duckdb' AS n; CREATE TABLE n.x AS SELECT 1"),
    "a copy": ("kept.sqlite", "VACUUM INTO 'copy.sqlite'"),
}


def test_a_query_changes_nothing_whatever_it_says(loop: asyncio.Runner, sql: Sql) -> None:
    def state() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sql.files.iterdir()}

    async def scenario() -> None:
        before = state()
        async with called(sql.viewer) as look:
            for database, statement in WRITING.values():
                await look.outcome("query", {"database": database, "statement": statement})
                assert state() == before, statement

    loop.run(scenario())


OUTSIDE = (
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('../../proc/self/environ')",
    "SELECT * FROM 'http://127.0.0.1/x.csv'",
    "INSTALL httpfs",
    "LOAD '/tmp/x.so'",
    "SET enable_external_access=true",
    "ATTACH '/tmp/outside.duckdb'",
)


def test_hostile_statements_and_files_cost_their_caller_only(loop: asyncio.Runner, sql: Sql) -> None:
    (sql.files / "broken.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (sql.files / "broken.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\xff" * 9000)
    (sql.files / "link.db").symlink_to("/etc/passwd")
    trap = sqlite3.connect(sql.files / "trap.sqlite")
    trap.executescript(
        "CREATE TABLE a(x); CREATE VIEW v AS SELECT load_extension('/tmp/x.so') FROM a; INSERT INTO a VALUES (1);"
    )
    trap.close()

    async def scenario() -> None:
        async with called(sql.worker) as work:
            for statement in OUTSIDE:
                assert "NotDone" in await work.error("run", statement=statement), statement
            for name in ("broken.sqlite", "broken.duckdb", "link.db"):
                assert "NotDone" in await work.error("tables", path=name)
            assert "NotDone" in await work.error("query", database="trap.sqlite", statement="SELECT * FROM v")
            hungry = "SELECT list(a.range || b.range) FROM range(100000) a, range(100000) b"
            assert "emory" in await work.error("run", statement=hungry)
            huge = await work.text(
                "query", statement="SELECT repeat('x', 10000000) AS x, '|a\nb|' AS y FROM range(3)"
            )
            assert len(huge) < 10_000
            assert "\\|a b\\|" in huge
            assert "| 1 |" in await work.text("query", statement="SELECT 1 AS a")

    loop.run(scenario())


ENDLESS = {
    "": "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3",
    "kept.sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
}


@pytest.mark.parametrize("database", ENDLESS, ids=["duckdb", "sqlite"])
def test_a_query_that_is_stopped_ends_and_so_does_one_that_takes_too_long(
    loop: asyncio.Runner, sql: Sql, database: str
) -> None:
    async def scenario() -> None:
        async with called(sql.worker) as work:
            asked = {"database": database, "statement": ENDLESS[database]}
            going = asyncio.ensure_future(work.outcome("run", asked))
            await asyncio.sleep(1)
            before = time.monotonic()
            going.cancel()
            await asyncio.wait([going])
            # `run` takes its turn: this one is served when the other has really ended.
            assert "| 2 |" in await work.text("run", statement="SELECT 2 AS a")
            assert time.monotonic() - before < 10  # a second where nothing else runs
            assert "did not end within 1 s" in await work.error("run", **asked, timeout=1)

    loop.run(scenario())


def test_calls_at_once_do_not_wait_for_each_other(loop: asyncio.Runner, sql: Sql) -> None:
    async def scenario() -> None:
        async with called(sql.viewer) as look:
            one = Caller(look.client, "/one")
            texts = await asyncio.gather(
                *(
                    one.text("query", statement=f"SELECT sum(rides) + {n} AS s FROM 'days.csv'")
                    for n in range(6)
                )
            )
            assert [f"| {60 + n} |" in text for n, text in enumerate(texts)] == [True] * 6

    loop.run(scenario())


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (b"day,rides\nMon,10\nTue,20\n", "text/csv"),
        (b"day,rides\nMon,10\nTue,20\n", "text/plain"),
        (b'[{"day": "Mon", "rides": 10}, {"day": "Tue", "rides": 20}]', "application/json"),
        (b'{"day": "Mon", "rides": 10}\n{"day": "Tue", "rides": 20}\n', "text/plain"),
    ],
    ids=["csv", "csv that is called text", "json", "json lines"],
)
def test_a_variable_is_the_table_data(loop: asyncio.Runner, sql: Sql, content: bytes, media: str) -> None:
    async def scenario() -> None:
        async with called(sql.viewer) as look:
            asked = {"statement": "SELECT sum(rides) AS rides FROM data", "form": "csv"}
            outcome = await look.outcome("query", asked, attached=(Attached("from", media, content),))
            assert isinstance(outcome, Completed), outcome
            assert outcome.output == "rides\n30\n"

    loop.run(scenario())


def test_a_parquet_variable_is_a_table_and_nothing_else_outside_is(loop: asyncio.Runner, sql: Sql) -> None:
    async def scenario() -> None:
        async with called(sql.worker) as work, called(sql.viewer) as look:
            await work.text("run", statement="COPY (SELECT 42 AS answer) TO 'kept.parquet'")
            parquet = Attached("from", "application/octet-stream", (sql.files / "kept.parquet").read_bytes())
            outcome = await look.outcome(
                "query", {"statement": "FROM data", "form": "csv"}, attached=(parquet,)
            )
            assert isinstance(outcome, Completed), outcome
            assert outcome.output == "answer\n42\n"
            for statement in ("SELECT * FROM '/etc/passwd'", "SELECT * FROM read_text('/etc/passwd')"):
                outcome = await look.outcome("query", {"statement": statement}, attached=(parquet,))
                assert not isinstance(outcome, Completed), outcome

    loop.run(scenario())


ATTACHING = [
    ("kept.sqlite", "ATTACH '/tmp/leak.db' AS l"),
    ("kept.sqlite", "ATTACH 'other.sqlite' AS l"),
    ("kept.sqlite", "SELECT 1; /* and */ attach database ':memory:' AS l"),
    ("kept.sqlite", "ATTACH (SELECT '/tmp/' || 'leak.db') AS l"),
    ("kept.sqlite", "ATTACH 'file:/tmp/leak.db?mode=rwc' AS l"),
    ("kept.sqlite", "VACUUM INTO '/tmp/leak.db'"),
    ("kept.sqlite", "VACUUM INTO 'other.sqlite'"),
    ("kept.sqlite", "PRAGMA temp_store_directory = '/tmp'"),
    ("kept.sqlite", "SELECT load_extension('/workspace/evil.so')"),
    ("", "ATTACH '/tmp/leak.db' AS l"),
    ("", "ATTACH 'other.duckdb' AS l"),
    ("", "SELECT 1; ATTACH ':memory:' AS l"),
]
REACHING_OUT = [
    "COPY (SELECT 1) TO '/tmp/leak.csv'",
    "COPY (SELECT 1) TO '../tmp/leak.csv'",
    "SELECT * FROM 'link/passwd'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/tmp/*')",
    "EXPORT DATABASE '/tmp/leak'",
    "SET temp_directory = '/tmp/leak'",
    "SET allowed_directories = ['/tmp/']",
    "SET enable_external_access = true",
    "INSTALL httpfs",
]


def test_a_call_attaches_nothing_and_opens_nothing_outside_of_the_workspace(
    loop: asyncio.Runner, sql: Sql
) -> None:
    """A data base in a temporary folder would bring to one agent what another one wrote, without its labels."""

    async def scenario() -> None:
        async with called(sql.worker) as work, called(sql.viewer) as look:
            await work.text("run", database="kept.sqlite", statement="CREATE TABLE IF NOT EXISTS t(a)")
            if not (sql.files / "link").is_symlink():
                (sql.files / "link").symlink_to("/etc")
            before = sorted(path.name for path in sql.files.iterdir())
            for database, statement in ATTACHING:
                told = await work.error("run", database=database, statement=statement)
                assert "A call works on one data base" in told, statement
                await look.error("query", database=database, statement=statement)
            for statement in REACHING_OUT:
                await work.error("run", statement=statement)
            assert sorted(path.name for path in sql.files.iterdir()) == before
            # What a statement needs of its own still works.
            assert "Done" in await work.text("run", database="kept.sqlite", statement="VACUUM")

    loop.run(scenario())
