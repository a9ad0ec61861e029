"""The first signal ends a command in order, a second one at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_WORK = """
import asyncio, sys, time
from iact import signals

signals.ENDING.begin()

async def work():
    try:
        print("works", flush=True)
        await asyncio.Event().wait()
    finally:
        print("closes", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print("closed", flush=True)

signals._SAME_WISH = float(sys.argv[1])
try:
    signals.run(work())
except KeyboardInterrupt:
    print(signals.ENDING.number.name, flush=True)
"""
_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def working(same_wish: float) -> subprocess.Popen[str]:
    """A command that works until a signal comes, and closes until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WORK, str(same_wish)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "works\n"
    return process


@pytest.mark.parametrize("number", _SIGNALS)
def test_the_first_ends_in_order_and_what_comes_with_it_is_the_same_wish(number: signal.Signals) -> None:
    with working(3600) as process:
        assert process.stdout is not None
        process.send_signal(number)
        assert process.stdout.readline() == "closes\n"
        for another in _SIGNALS:
            process.send_signal(another)
        assert process.communicate("") == (f"closed\n{number.name}\n", "")
        assert process.returncode == 0


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("second", _SIGNALS)
def test_a_second_ends_at_once(number: signal.Signals, second: signal.Signals) -> None:
    with working(0) as process:
        assert process.stdout is not None
        process.send_signal(number)
        assert process.stdout.readline() == "closes\n"
        process.send_signal(second)
        assert process.wait(300) == 128 + second
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert process.stderr.read().startswith("iact: ended at once.")
