"""A person stops an agent two levels down in the middle of a sentence, and tells two agents what they missed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import PATIENCE, performed
from tests.endpoint import Gate, Reply, Script

QUESTION: Final = """\
Please have the release notes for 2.4 written from these commits. Readers are people who run our server.

```text
a41f0c2 config: `timeout` is in seconds now, was milliseconds
77b2e90 perf: the index is read by mmap; cold start 9.1 s -> 1.3 s
0d93aa1 fix: a full disk no longer corrupts the journal
e5127bd feat: `--read-only` flag
c8804f3 chore: bump linters
1b6d2ef fix: log rotation on SIGHUP
```
"""

TO_EDITOR: Final = """\
An editor decides what goes in, and has somebody write.

```CALL editor role="an editor of technical texts"
Release notes for 2.4 from the commits in $code_1, for people who run the server. Decide what matters to them, and have it
written.
```
"""

TO_WRITER: Final = """\
The linters don't concern our readers; everything else does. I hand on what is to be said, in order.

```CALL writer role="a writer"
Write release notes for version 2.4 from $code_1. Leave out the linters. Under 120 words.
```
"""

GUSHING: Final = """\
# Welcome to the magnificent 2.4!

We are beyond thrilled to unveil our most groundbreaking release ever. Prepare to be amazed by a blazing-fast, truly
revolutionary start-up experience that will transform the way you think about servers, together with a host of
delightful enhancements that our passionate team has lovingly crafted for you, our wonderful community, over many
exciting months. First and foremost"""

PLAIN: Final = """\
# 2.4

- **Start-up**: the index is mapped instead of read; a cold start takes 1.3 s, was 9.1 s.
- **Fixed**: a full disk no longer damages the journal.
- **Fixed**: SIGHUP rotates the logs again.
- **New**: `--read-only`.
- **Changed**: `timeout` in the configuration is in seconds, not milliseconds. Divide yours by 1000 before you upgrade.
"""

FIRST: Final = """\
The user wants first what breaks. The text is good, but has it at the end.

```CALL writer
Put the change of `timeout` first, under a heading of its own: whoever overlooks it has a server that waits a thousand times as
long. Otherwise leave the text as it is.
```
"""

SORTED: Final = """\
# 2.4

## Before you upgrade

`timeout` in the configuration is in **seconds** now, not milliseconds. Divide yours by 1000, or the server waits a thousand
times as long.

## What else

- **Start-up**: the index is mapped instead of read; a cold start takes 1.3 s, was 9.1 s.
- **Fixed**: a full disk no longer damages the journal.
- **Fixed**: SIGHUP rotates the logs again.
- **New**: `--read-only`.
"""

DONE: Final = f"""\
The notes, with what breaks at the top:

{SORTED}"""

ANSWER: Final = f"""\
Here they are. You stopped the first draft, so it is plain now, and what breaks stands first.

{SORTED}"""


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    gushing, rewriting = Gate(), Gate()
    script: Script = {
        "/": [TO_EDITOR, ANSWER],
        "/editor": [TO_WRITER, FIRST, DONE],
        "/editor/writer": [
            Reply(GUSHING, gates={len(GUSHING): gushing}),
            Reply(PLAIN, gates={24: rewriting}),
            SORTED,
        ],
    }
    with performed(data, script) as person:
        person.say(QUESTION)
        assert gushing.wait(PATIENCE)
        person.tell(
            {
                "type": "inject",
                "path": "/editor/writer",
                "text": "Stop. No superlatives, no feelings: say what changed, in plain sentences.",
                "mode": "interrupt",
            }
        )
        gushing.release()
        assert rewriting.wait(PATIENCE)
        person.tell(
            {
                "type": "inject",
                "path": "/editor",
                "text": "Whatever breaks for people who upgrade belongs at the top.",
                "mode": "deliver",
            }
        )
        rewriting.release()
        person.answered()
        return person.folder
