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


@module.function(impact=0, summary="Rows of a SELECT over CSV, Parquet, JSON files, a variable, or a data base.", body="statement",
                 timeout=130)  # fmt: skip
async def query(
    call: Call,
    statement: str,
    database: str = "",
    from_: Value = _NOTHING,
    form: Literal["table", "csv", "json"] = "table",
    most: int | None = None,
    timeout: float = 60,  # noqa: ASYNC109
) -> Result:
    """Runs one SELECT in DuckDB's SQL. Files of the workspace are tables by their names in quotes; `from=$name` makes a
    variable of yours (CSV, JSON or Parquet) the table `data`. `database`: a SQLite or DuckDB file, asked in its own
    SQL. `form=csv` and `json` give all rows, as a variable to hand on; a table 100, or `most`. `timeout`: seconds.

    ```sql.query from=$orders
    SELECT c.name, sum(d.amount) AS total FROM data d JOIN 'customers.csv' c USING (id) GROUP BY ALL ORDER BY total DESC
    ```
    """
    asked: dict[str, JSON] = {"do": "query", "statement": statement, "database": database}
    if from_.data:
        asked["from"] = from_.media_type
    return await _answer(call, asked, form, most, timeout, content=from_.data)


@module.function(impact=1, summary="Run statements that change a data base, or write tables to files.", body="statement",
                 exclusive=True, idempotent=False, timeout=130)  # fmt: skip
async def run(
    call: Call,
    statement: str,
    database: str = "",
    form: Literal["table", "csv", "json"] = "table",
    most: int | None = None,
    timeout: float = 60,  # noqa: ASYNC109
) -> Result:
    """Runs statements, separated by ;, and gives the rows of the last one, or how many rows were changed. A `database`
    that is not there is made: SQLite if its name ends in .sqlite or .db, else DuckDB. Without `database` nothing lasts
    but the files that COPY … TO writes.

    ```sql.run database=shop.duckdb
    CREATE TABLE orders AS SELECT * FROM 'orders.csv' WHERE amount > 0;
    COPY (SELECT customer, sum(amount) FROM orders GROUP BY ALL) TO 'totals.csv';
    ```
    """
    return await _answer(
        call, {"do": "run", "statement": statement, "database": database}, form, most, timeout
    )


@module.function(impact=0, summary="Tables of a data base or data file: their columns with types, how many rows.", body="path",
                 timeout=60)  # fmt: skip
async def tables(call: Call, path: str) -> str:
    """A line for each table of the SQLite or DuckDB file at `path`, or for a CSV, Parquet or JSON file: its rows, and
    its columns with their types.

    ```sql.tables path=orders.csv
    ```
    """
    _, content = await apart.ask(_WORKER, {"do": "tables", "database": path.strip()}, call, limit=50)
    return content.decode("utf-8", "replace") or "[There are no tables.]\n"


async def _answer(
    call: Call,
    request: dict[str, JSON],
    form: Literal["table", "csv", "json"],
    most: int | None,
    limit: float,
    *,
    content: bytes = b"",
) -> Result:
    """Have a statement carried out. `most`: rows; None: as many as there are, within bounds."""
    rows = 0 if most is None else max(1, min(most, _MOST))
    answer, data = await apart.ask(
        _WORKER, {**request, "form": form, "most": rows}, call, limit=limit, content=content
    )
    text = data.decode("utf-8", "replace")
    facts: dict[str, JSON] = {name: answer.get(name) for name in ("rows", "columns", "complete", "changed")}
    if form != "table":
        media_type = {"csv": "text/csv", "json": "application/json"}[form]
        return Result(text, media_type, data=facts)

    if not answer.get("columns"):
        changed = answer.get("changed")
        done = f"Done; {changed:,} rows were changed.\n" if isinstance(changed, int) else "Done.\n"
        return Result(done, data=facts)

    if not answer.get("complete"):
        text = f"{text}\n[These are the first {answer.get('rows'):,} rows; most=... gives more.]\n"
    return Result(text, "text/markdown", data=facts)
