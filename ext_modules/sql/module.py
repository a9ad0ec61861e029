"""`sql`: databases in the workspace, and its CSV, Parquet and JSON files as tables.

Nothing is kept open between calls, so undoing to an earlier version of the workspace undoes changes to databases as
well. `query` reads, and runs where nothing can be written, whatever its statement says; `run` writes. Each call is a
separate process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from ext_modules.sdk import Call, Module, Result, apart
from ext_modules.sdk.values import JSON, Value

module = Module(
    "sql",
    "Asks and changes SQLite and DuckDB data bases, and asks CSV, Parquet and JSON files as tables.",
    keywords=[
        "sql", "sqlite", "duckdb", "database", "databases", "data", "base", "query", "select", "insert", "update",
        "table", "tables", "column", "columns", "row", "rows", "join", "group", "count", "sum", "average", "schema",
        "csv", "tsv", "parquet", "json", "aggregate", "statistics", "db",
    ],
)  # fmt: skip

_WORKER: Final = Path(__file__).with_name("worker.py")
_MOST: Final = 100_000
_NOTHING: Final = Value(b"")


@module.function(impact=0, summary="Ask a data base, or CSV, Parquet and JSON files, with SQL.", body="statement",
                 timeout=130)  # fmt: skip
async def query(
    call: Call,
    statement: str,
    database: str = "",
    form: Literal["table", "csv", "json"] = "table",
    most: int = 100,
    timeout: float = 60,  # noqa: ASYNC109
    from_: Value = _NOTHING,
) -> Result:
    """Runs one SELECT, which can change nothing. Without `database` it is DuckDB's SQL, in which files of the
    workspace are tables by their names; with it, that of the SQLite or DuckDB file. `from=$name` makes a variable
    of yours (CSV, JSON or Parquet) the table `data`. `form`: a table to read, csv or json. `most`: rows to give
    (default 100). `timeout`: seconds (default 60).

    ```sql.query
    SELECT weekday, avg(rides) AS mean FROM 'counts.csv' GROUP BY weekday ORDER BY mean DESC
    ```
    ```sql.query from=$orders
    SELECT customer, sum(amount) FROM data GROUP BY ALL
    ```
    """
    asked: dict[str, JSON] = {"do": "query", "statement": statement, "database": database}
    if from_.data:
        asked["from"] = from_.media_type
    return await _answer(call, asked, form, most, timeout, content=from_.data)


@module.function(impact=1, summary="Change a data base, or write tables to files, with SQL.", body="statement",
                 exclusive=True, idempotent=False, timeout=130)  # fmt: skip
async def run(
    call: Call,
    statement: str,
    database: str = "",
    form: Literal["table", "csv", "json"] = "table",
    most: int = 100,
    timeout: float = 60,  # noqa: ASYNC109
) -> Result:
    """Runs statements that write, separated by ;. A `database` that is not there is made: SQLite if its name ends in
    .sqlite or .db, else DuckDB. Without `database` nothing lasts but the files that COPY … TO writes.

    ```sql.run database=shop.duckdb
    CREATE TABLE orders AS SELECT * FROM 'orders.csv' WHERE amount > 0;
    COPY (SELECT customer, sum(amount) FROM orders GROUP BY ALL) TO 'totals.csv';
    ```
    """
    return await _answer(
        call, {"do": "run", "statement": statement, "database": database}, form, most, timeout
    )


@module.function(impact=0, summary="List the tables and columns of a data base or a data file.", body="path",
                 timeout=60)  # fmt: skip
async def tables(call: Call, path: str) -> str:
    """Each table of the SQLite or DuckDB file `path` with its rows and columns; or those of a CSV, Parquet or JSON
    file.
    """
    _, content = await apart.ask(_WORKER, {"do": "tables", "database": path.strip()}, call, limit=50)
    return content.decode("utf-8", "replace") or "[There are no tables.]\n"


async def _answer(
    call: Call,
    request: dict[str, JSON],
    form: Literal["table", "csv", "json"],
    most: int,
    limit: float,
    *,
    content: bytes = b"",
) -> Result:
    asked = {**request, "form": form, "most": max(1, min(most, _MOST))}
    said, content = await apart.ask(_WORKER, asked, call, limit=limit, content=content)
    text = content.decode("utf-8", "replace")
    facts: dict[str, JSON] = {name: said.get(name) for name in ("rows", "columns", "complete", "changed")}
    if form != "table":
        return Result(text, {"csv": "text/csv", "json": "application/json"}[form], data=facts)
    if not said.get("columns"):
        changed = said.get("changed")
        return Result(
            f"Done; {changed:,} rows were changed.\n" if isinstance(changed, int) else "Done.\n", data=facts
        )
    more = (
        ""
        if said.get("complete")
        else f"\n[These are the first {said.get('rows'):,} rows; `most` gives more.]\n"
    )
    return Result(f"{text}{more}", "text/markdown", data=facts)
