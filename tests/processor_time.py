"""Lists the processor seconds of folders, files and tests at the end of a run: pytest -p tests.processor_time …

If all cores of a machine are busy, this is the time that a run takes. Unlike wall-clock time, it hardly depends on what
else the machine does. It counts the process of a file and all processes below it. Processes in an engine's containers
are not below it, so the true cost of a file may be higher.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

_NAME: Final = "processor seconds"
_TICK: Final = os.sysconf("SC_CLK_TCK")
_LISTED: Final = 40


def _of(process: int) -> tuple[float, list[int]]:
    """The seconds of a process and its ended children, and its living children. Zero for a process that is gone."""
    children = list[int]()
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
                children += map(int, (task / "children").read_text(encoding="utf-8").split())
    except (FileNotFoundError, ProcessLookupError):
        return 0, []
    return sum(map(int, fields[11:15])) / _TICK, children


def used() -> float:
    """Processor seconds of this process and all processes below it."""
    seconds, left = _of(os.getpid())
    while left:
        one, children = _of(left.pop())
        seconds += one
        left += children
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Add what the test used to its last report, that of its teardown, which every test has."""
    item.stash[_BEFORE] = used()
    return (yield)


_BEFORE: Final = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the numbers as properties, which workers send with their reports to the process that lists them."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_NAME, used() - item.stash[_BEFORE]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the folders, files and tests that used most."""
    tests = dict[str, float]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                spent = [float(str(value)) for name, value in report.user_properties if name == _NAME]
                tests[report.nodeid] = max(0, sum(spent))
    rooms, files = defaultdict[str, float](float), defaultdict[str, float](float)
    for name, seconds in tests.items():
        file = name.partition("::")[0]
        files[file] += seconds
        rooms["/".join(file.split("/")[:2])] += seconds
    terminalreporter.section(f"processor seconds, {sum(tests.values()):.0f} in all")
    for kind in (rooms, files, tests):
        for name, seconds in sorted(kind.items(), key=lambda one: -one[1])[:_LISTED]:
            terminalreporter.line(f"{seconds:8.1f} {name}")
        terminalreporter.line("")
