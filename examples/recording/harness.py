"""Ten steps in six rounds: search for a bug, race two fixes, run the tests, update the documentation.

The worked example of Graph Harness, section 3.6: searches and reads run in parallel, and either of two fixes is enough
(`any_of`). Each fix works in a copy of the workspace, and only the changes of the first one are applied.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

QUESTION: Final = '''\
People are logged out after a minute, though a session should last an hour. Here is the code with its test, and the page
that describes it. Please mend it, and bring the page up to date.

```python
"""auth.py: who is logged in."""

from utils import minutes

LIFETIME = minutes(60)


def valid(started, now):
    """Whether a session that began at `started` still holds; both in seconds."""
    return now - started < LIFETIME
```

```python
"""utils.py"""


def minutes(count):
    """So many minutes, in seconds."""
    return count
```

```python
"""test_auth.py"""

import unittest

from auth import valid


class Lifetime(unittest.TestCase):
    def test_an_hour(self):
        self.assertTrue(valid(0, 3599))
        self.assertFalse(valid(0, 3600))


if __name__ == "__main__":
    unittest.main()
```
'''

PLAN: Final = """\
This can be foreseen, so I make a plan of it. Two mends are possible, and either will do.

```files.write path=src/auth.py content=$code_1
```

```files.write path=src/utils.py content=$code_2
```

```files.write path=src/test_auth.py content=$code_3
```

```files.write path=docs/sessions.md
# Sessions

A session ends by itself.
```

```PLAN logout mode=static
goal: Sessions last an hour, the tests pass, and the page says so
steps:
  - {id: search_auth, call: shell.run, params: {command: "grep -ln LIFETIME src/*.py | head -1"}}
  - {id: search_utils, call: shell.run, params: {command: "grep -ln 'def minutes' src/*.py | head -1"}}
  - {id: read_auth, call: shell.run, refs: {command: {step: search_auth, field: stdout, template: "cat {}"}}}
  - {id: read_utils, call: shell.run, refs: {command: {step: search_utils, field: stdout, template: "cat {}"}}}
  - {id: analyze, agent: analyst, task: "Say in two sentences where the fault is.", refs: {auth: {step: read_auth, field: stdout}, utils: {step: read_utils, field: stdout}}}
  - {id: fix_a, call: shell.run, params: {command: "sleep 2; cd src && patch auth.py < ../auth.patch"}, after: [analyze]}
  - {id: fix_b, call: shell.run, params: {command: "cd src && sed -i 's/return count$/return 60 * count/' utils.py && grep -n return utils.py"}, after: [analyze]}
  - {id: run_tests, call: shell.run, params: {command: "cd src && python3 -m unittest -v test_auth 2>&1"}, after: [fix_a, fix_b], join: any_of}
  - {id: update_docs, call: shell.run, params: {command: "echo 'A session ends an hour after it began (`auth.LIFETIME`).' >> docs/sessions.md && cat docs/sessions.md"}, after: [analyze]}
  - {id: report, agent: reporter, task: "Report in three short points what was wrong, what was changed, and what shows that it is mended.", refs: {fault: {step: analyze}, tests: {step: run_tests, field: stdout}}, after: [run_tests, update_docs]}
```
"""

FAULT: Final = (
    "`minutes` in `utils.py` gives minutes back as they are, though its documentation promises seconds. So `LIFETIME` "
    "in `auth.py` is 60 seconds in place of 3,600."
)

REPORT: Final = """\
- **Wrong**: `minutes(60)` was 60, and so a session lasted a minute.
- **Changed**: `utils.py` multiplies by 60; `docs/sessions.md` names the hour.
- **Shown**: `test_an_hour` passes.
"""

ANSWER: Final = """\
Sessions last an hour again.

- The fault was in `utils.py`: `minutes` did not turn minutes into seconds. One line is changed.
- The test passes, and `docs/sessions.md` says how long a session lasts.
- A patch of `auth.py` raced with it in a copy of the files; it came second, and nothing of it was kept.
"""

SCRIPT: Final = {"/": [PLAN, ANSWER], "/logout/analyst": [FAULT], "/logout/reporter": [REPORT]}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT) as person:
        person.say(QUESTION)
        person.answered()
        return person.folder
