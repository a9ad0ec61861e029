"""The report contains exactly the stored results, and survives a benchmark that fails."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import page
from benchmarks.kept import VARIABLE, Chart, Target
from benchmarks.page import APART, PARTS, Kept, Part
from benchmarks.svg import draw

LINES = Chart("A step", "steps", "ms", [("one", [(1, 0.5), (100, 7.0)]), ("two <&>", [(10, 30.0)])], log=True)
BARS = Chart(
    "Sizes", "", "kB", [("one", [("small", 1.0), ("large", 40.0)]), ("two", [("large", 3.0)])], "bars"
)


def made(
    name: str = "gate", text: str = "A sentence.", wrong: str = "", numbers: Mapping[str, object] = {}
) -> Kept:
    return Kept(name, "2026-05-04T03:02+00:00", 7, "a machine", [0.1, 0.2], 0, wrong, text, [], numbers)


def test_the_page_and_its_charts_are_made_from_what_is_kept() -> None:
    for path, text in page.files(page.kept()).items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run `python -m benchmarks --write-only`"
        )


def test_the_readme_has_the_figures_that_are_kept() -> None:
    readme = page.README.read_text(encoding="utf-8")
    found = page.kept()
    if "peers" in found:
        assert page.with_figures(readme, found) == readme, "run `python -m benchmarks --write-only`"


def test_every_benchmark_has_a_place_in_the_report() -> None:
    there = {path.parent.name for path in (page.ROOT / "benchmarks").glob("*/__main__.py")}
    assert there == set(PARTS) | APART, (
        "benchmarks/page.py says what stands where in the report, and with which arguments"
    )


@pytest.mark.parametrize("chart", [LINES, BARS], ids=["lines", "bars"])
def test_a_chart_is_one_well_formed_picture_for_light_and_dark(chart: Chart) -> None:
    root = ElementTree.fromstring(draw(chart))
    assert root.attrib["aria-label"] == chart.title
    text = "".join(root.itertext())
    assert "prefers-color-scheme:dark" in text
    for name, _ in chart.lines:
        assert name in text
    points = sum(len(line) for _, line in chart.lines)
    shapes = "circle" if chart.kind == "lines" else "rect"
    drawn = [one for one in root.iter() if one.tag.endswith(shapes)]
    assert len(drawn) == points + (len(chart.lines) if shapes == "rect" else 0)


def test_a_higher_value_stands_higher_on_either_scale() -> None:
    for log in (False, True):
        root = ElementTree.fromstring(draw(Chart("t", "x", "y", [("a", [(1, 2.0), (10, 20.0)])], log=log)))
        low, high = [float(one.attrib["cy"]) for one in root.iter() if one.tag.endswith("circle")]
        assert high < low


def test_columns_are_kept_apart_from_tables_and_sentences() -> None:
    text = '| a | b |\n|---|---|\n| 1 | 2 |\nA sentence.\nAnother.\nname      p50    p99\nfast      1.0    2.0\n{"a": 1}\n'
    assert page.markdown(text) == (
        "| a | b |\n|---|---|\n| 1 | 2 |\n\nA sentence.\n\nAnother.\n\n"
        "```text\nname      p50    p99\nfast      1.0    2.0\n```"
    )


def test_a_part_that_broke_says_so() -> None:
    assert "**This part did not finish:** no engine" in page.render({"gate": made(wrong="no engine")})


def test_figures_that_are_missing_are_a_dash() -> None:
    numbers = {"found": {"ours": {"steps 200": {"at_200": 1.26}, "stored 200": {"bytes": 1660.0}}}}
    rows = page.figures(made("peers", numbers=numbers)).splitlines()
    assert rows[0] == "| | a step after 200 others | stored per step |", "what nobody has is left out"
    assert rows[2] == "| **iact**, every step durable | 1.3 ms | 1.7 kB |"
    assert rows[3] == "| OpenAI Agents SDK | – | – |"


def test_only_the_readmes_figures_are_replaced() -> None:
    readme = "before\n<!-- from docs/benchmarks -->\nold\n<!-- end -->\nafter\n"
    text = page.with_figures(readme, {"peers": made("peers", numbers={"found": {}})})
    assert text.startswith("before\n<!-- from docs/benchmarks -->\n| |")
    assert text.endswith("\n<!-- end -->\nafter\n")
    with pytest.raises(ValueError, match="no place"):
        page.with_figures("nothing", {"peers": made("peers", numbers={"found": {}})})


def _benchmark(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str, seconds: float = 60) -> Kept:
    """One run of a benchmark that consists of `source`."""
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "made_up.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(command, "ROOT", folder)
    monkeypatch.setitem(PARTS, "made_up", Part("Made up", "", seconds=seconds))
    return command.run("made_up")


def test_what_a_benchmark_prints_and_hands_over_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = [json.dumps({"numbers": {"a": 1}}), json.dumps({"chart": {"title": "t"}})]
    source = (
        f"import os\nprint('| a |')\nopen(os.environ[{VARIABLE!r}], 'w').write({chr(10).join(lines)!r})\n"
    )
    found = _benchmark(monkeypatch, tmp_path, source)
    assert (found.text, found.numbers, found.charts) == ("| a |\n", {"a": 1}, [{"title": "t"}])
    assert (found.status, found.wrong) == (0, "")


def test_a_missed_target_is_no_failure_and_an_exception_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    missed = _benchmark(monkeypatch, tmp_path / "one", "print('so far')\nraise SystemExit(1)\n")
    assert (missed.status, missed.wrong) == (1, "")
    broken = _benchmark(monkeypatch, tmp_path / "two", "print('so far')\nraise ValueError('no engine')\n")
    assert (broken.text, broken.wrong) == ("so far\n", "ValueError: no engine")


def test_a_benchmark_that_hangs_is_ended_with_all_its_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = (
        f"import subprocess\nsubprocess.run([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])\n"
    )
    found = _benchmark(monkeypatch, tmp_path, source, seconds=1)
    assert found.wrong == "It did not end within 1 seconds."


@pytest.mark.parametrize(
    ("target", "met", "row"),
    [
        (Target("a", 2.0, 3.0, "ms"), True, "| a | 2.00 ms | ≤ 3 | yes |"),
        (Target("a", 4.0, 3.0, "ms"), False, "| a | 4.00 ms | ≤ 3 | **no** |"),
        (Target("a", 40_000.0, 30_000.0, most=False), True, "| a | 40,000 | ≥ 30,000 | yes |"),
        (Target("a", 4.0, None), True, "| a | 4.00 | – | – |"),
    ],
)
def test_a_target_says_whether_it_is_met(target: Target, met: bool, row: str) -> None:
    assert (target.met, target.line()) == (met, row)
