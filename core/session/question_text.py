"""A question to a person as plain text, for whoever decides by it at a terminal or through another program.

Nothing is taken out of what it shows, nothing is unseen, and no value can pass for a line of ours.
"""

from __future__ import annotations

import json
from typing import Final

from iact.core.characters import escaped
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.hosts import HostAsk, rule_of
from iact.core.records.record import Record

_SENTENCE: Final = 600
"""Characters of a sentence of the gate's."""
_WIDTH: Final = 100
"""Characters of one row of a value."""


def told(question: Record) -> str:
    """Any question in full."""
    if isinstance(question.content, HostAsk):
        return host_words(question.agent, question.content)
    assert isinstance(question.content, ClearanceAsk)
    return words(question.agent, question.content)


def about(question: Record) -> dict[str, JSON]:
    """What is asked for, for programs: the whole call, or the host."""
    asked = question.content
    if isinstance(asked, HostAsk):
        return {"module": asked.module, "host": asked.host, "port": asked.port}
    assert isinstance(asked, ClearanceAsk)
    return {"function": asked.function, "arguments": dict(asked.params), "impact": asked.impact}


def words(agent: str, asked: ClearanceAsk) -> str:
    """A question in full, for a terminal. No value can pass for a line of ours: its own lines stand behind a bar."""
    lines = [
        _inline(f"{agent} asks to run {asked.function} (impact {asked.impact:g}).", _SENTENCE),
        *(_inline(one, _SENTENCE) for one in (asked.reason, asked.why) if one),
    ]
    for name, value in asked.params.items():
        labels = asked.provenance.get(name, ())
        source = f" (from {', '.join(labels)})" if labels else ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {_inline(f'{name}{source}', _SENTENCE)}: {_about(text)}", *_quoted(text)]
    for name, about in (asked.attached or {}).items():
        if about.sha256:
            lines.append(f"  {_inline(name)}: {about.size} bytes of {_inline(about.media)}")
    return "\n".join(_exact(line) for line in lines)


def host_words(agent: str, asked: HostAsk) -> str:
    """A question about a host, for a terminal."""
    host = _inline(rule_of(asked.host, asked.port), _SENTENCE)
    return (
        f"{_inline(agent)}: the module {asked.module} wants to reach {host}, which nobody allowed so far.\n"
        "If you allow it, data can go there and come from there."
    )


def _exact(text: str) -> str:
    """Text for somebody who decides by it: nothing is taken out, nothing is unseen."""
    return escaped(text, every=True)


def _inline(text: str, limit: int = 200) -> str:
    """It as part of one line."""
    line = " ".join(_exact(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _about(text: str) -> str:
    """A value that fits behind its name, or how long the one is that follows."""
    lines = _lines(text)
    return lines[0] if len(lines) == 1 else f"{len(text)} characters in {len(lines)} lines"


def _quoted(text: str) -> list[str]:
    lines = _lines(text)
    return [f"  | {line}" for line in lines] if len(lines) > 1 else []


def _lines(text: str) -> list[str]:
    """The lines that a terminal would make of a text, one at least: the long ones cut into pieces of their own."""
    rows = [
        row[at : at + _WIDTH]
        for row in _exact(text).splitlines()
        for at in range(0, max(1, len(row)), _WIDTH)
    ]
    return rows or [""]
