"""What an agent reads about an error: what happened, and no way through code of ours."""

from __future__ import annotations

import pytest

from iact.core.modules.error_text import error_text
from iact.core.modules.outcome import Raised

OURS = """\
Traceback (most recent call last):
  File "/opt/iact/ext_modules/files/module.py", line 70, in read
    with place.opened(path) as file:
         ^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.13/contextlib.py", line 141, in __enter__
    return next(self.gen)
ext_modules.files.place.FileProblem: There is no file a.txt.
"""
THEIRS = """\
Traceback (most recent call last):
  File "/module/module.py", line 12, in forecast
    return table[place]
           ~~~~~^^^^^^^
  File "/opt/iact/ext_modules/sdk/call.py", line 88, in output
    raise OutputClosed
KeyError: 'Rome'
"""


@pytest.mark.parametrize("shipped", [True, False])
def test_an_error_of_ours_is_one_sentence(shipped: bool) -> None:
    raised = Raised("FileProblem", "There is no file a.txt.", OURS, "")
    assert error_text(raised, shipped=shipped) == "There is no file a.txt."


def test_a_message_that_is_no_sentence_has_its_type_in_front() -> None:
    assert error_text(Raised("KeyError", "'Rome'", OURS, ""), shipped=True) == "KeyError: 'Rome'"
    assert error_text(Raised("MemoryError", "", OURS, ""), shipped=True) == "It ended with MemoryError."


def test_code_that_is_not_ours_keeps_its_own_lines_of_the_trace() -> None:
    told = error_text(Raised("KeyError", "'Rome'", THEIRS, "looking\n"), shipped=False)
    assert told.startswith("looking\n\nKeyError: 'Rome'\nTraceback (most recent call last):\n")
    assert '  File "/module/module.py", line 12, in forecast\n    return table[place]\n' in told
    assert "ext_modules" not in told
    assert "OutputClosed" not in told
    assert told.endswith("KeyError: 'Rome'\n")


def test_a_log_of_a_module_that_did_not_start_stays() -> None:
    log = "SyntaxError: invalid syntax"
    assert error_text(Raised("ModuleLost", "The module x did not start.", log, ""), shipped=False).endswith(
        log
    )


def test_a_trace_that_our_loader_begins_ends_in_the_authors_code() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/opt/iact/ext_modules/sdk/loader.py", line 9, in load\n    run()\n'
        '  File "/module/module.py", line 1, in <module>\n    import nothing\nModuleNotFoundError: nothing\n'
    )
    told = error_text(Raised("ModuleLost", "The module x did not start.", log, ""), shipped=False)
    assert '  File "/module/module.py", line 1, in <module>\n' in told
    assert "loader.py" not in told
