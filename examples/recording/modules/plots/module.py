"""Charts of CSV tables with matplotlib, in a container without a network."""

import csv
import io
import os

from ext_modules.sdk import Module, Value

os.environ.setdefault("MPLCONFIGDIR", "/tmp/matplotlib")

module = Module(
    "plots",
    "Draws charts of tables, as PNG images.",
    keywords=["plot", "chart", "graph", "figure", "draw", "picture", "image", "matplotlib"],
)


def _columns(table: str, x: str, y: str) -> tuple[list[str], list[float]]:
    rows = list(csv.DictReader(io.StringIO(table)))
    if not rows or x not in rows[0] or y not in rows[0]:
        raise ValueError(
            f"The table has no columns {x!r} and {y!r}; it has {', '.join(rows[0]) if rows else 'no rows'}."
        )
    return [row[x] for row in rows], [float(row[y]) for row in rows]


def _drawn(kind: str, table: str, x: str, y: str, title: str) -> Value:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    names, values = _columns(table, x, y)
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2), dpi=100)
    if kind == "line":
        axes.plot(range(len(values)), values, color="#3b5bdb", linewidth=1.1)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xticks([at for at in axes.get_xticks() if 0 <= at < len(names)])
        axes.set_xticklabels([names[int(at)] for at in axes.get_xticks()], fontsize=8)
    else:
        axes.bar(names, values, color="#3b5bdb")
        axes.tick_params(axis="x", labelsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    pyplot.close(figure)
    return Value(out.getvalue(), "image/png", f"{kind}.png")


@module.function(
    impact=0, summary="Draw a line chart of two columns.", media_type="image/png", body="table", timeout=60
)
def line(table: str, x: str, y: str, title: str) -> Value:
    """`table`: CSV with a header, as the body or `table=$name`. `x`, `y`: names of columns; y holds numbers.

    ```plots.line x=day y=rides title="Rides per day" table=$rides
    ```
    """
    return _drawn("line", table, x, y, title)


@module.function(
    impact=0, summary="Draw a bar chart of two columns.", media_type="image/png", body="table", timeout=60
)
def bars(table: str, x: str, y: str, title: str) -> Value:
    """`table`: CSV with a header, as the body or `table=$name`. `x`, `y`: names of columns; y holds numbers.

    ```plots.bars x=month y=rides title="Rides per month" table=$months
    ```
    """
    return _drawn("bars", table, x, y, title)
