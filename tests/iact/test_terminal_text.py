"""What a terminal shows of an answer while it is written."""

from __future__ import annotations

import io

import pytest

from iact.cli.program import BY_TASK, program
from iact.commands.terminal_text import TerminalText
from iact.core.views.events import Delta

CALLS = "Let me look.\n\n```shell.run\ndf -h\n```\n\nDone:\n\n```python\nprint(1)\n```\n"


def written(text: str, size: int) -> str:
    out = io.StringIO()
    live = TerminalText(out)
    for at in range(0, len(text), size):
        live.take(Delta("/", text[at : at + size]))
    live.end()
    return out.getvalue()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_text_is_printed_and_actions_are_not(size: int) -> None:
    assert written(CALLS, size) == "Let me look.\n\n\nDone:\n\n```python\nprint(1)\n```\n"


def test_a_line_is_printed_before_it_ends() -> None:
    out = io.StringIO()
    live = TerminalText(out)
    live.take(Delta("/", "The first wo"))
    assert out.getvalue() == "The first wo"
    live.take(Delta("/", "rd `x`"))
    live.take(Delta("/child", "not this"))
    live.take(Delta("/", "nor this", thought=True))
    assert out.getvalue() == "The first word `x`"
    live.end()
    assert out.getvalue() == "The first word `x`\n"


@pytest.mark.parametrize(
    ("pieces", "reply", "shown"),
    [
        (["An answer."], "An answer.", "An answer.\n"),
        (["An ans"], "An answer.", "An answer.\n"),  # the end was not told in time
        ([], "An answer.", ""),
    ],
)
def test_what_is_on_the_screen_is_not_printed_again(pieces: list[str], reply: str, shown: str) -> None:
    out = io.StringIO()
    live = TerminalText(out)
    for piece in pieces:
        live.take(Delta("/", piece))
    live.end(reply)
    assert out.getvalue() == shown
    assert live.shows(reply) == bool(shown)
    live.interrupted()
    assert not live.shows(reply)


def test_a_text_with_something_else_in_its_middle_is_not_what_the_screen_shows() -> None:
    out = io.StringIO()
    live = TerminalText(out)
    live.take(Delta("/", "The ans"))
    live.interrupted()
    out.write("a notice\n")
    live.take(Delta("/", "wer."))
    live.end("The answer.")
    assert out.getvalue() == "The ans\na notice\nwer.\n"
    assert not live.shows("The answer.")

    live.take(Delta("/", "Another."))
    live.end("Another.")
    assert live.shows("Another.")


def test_a_text_that_begins_again_begins_on_its_own_line() -> None:
    out = io.StringIO()
    live = TerminalText(out)
    live.take(Delta("/", "The fir"))
    live.take(Delta("/", "Another", restart=True))
    live.end("Another")
    assert out.getvalue() == "The fir\nAnother\n"
    assert live.shows("Another")


def test_the_help_lists_every_command_once() -> None:
    listed = [name for names in BY_TASK.values() for name in names]
    assert sorted(listed) == sorted(program.commands)
