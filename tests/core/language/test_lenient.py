"""Arguments as models write them are read where exactly one reading fits; otherwise a sentence says what is wrong."""

from __future__ import annotations

import json
from typing import Final

import pytest

from iact.core.language.actions import CALL, RECALL, REMEMBER, SHOW, WAIT, ActionSpec
from iact.core.language.grammar import Bound, Mistake
from iact.core.language.lenient import read_action
from iact.core.language.variables import Value, text_value
from iact.core.ports import JSON


def function(name: str, body: str | None, *required: str, **properties: JSON) -> ActionSpec:
    """A function with these parameters."""
    parameters: dict[str, JSON] = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
    }
    return ActionSpec(name, "", parameters=parameters, body=body)


TEXT: Final[JSON] = {"type": "string"}
RUN: Final = function(
    "shell.run", "command", "command",
    command=TEXT, timeout={"type": "number"}, background={"type": "boolean"},
    language={"type": "string", "enum": ["bash", "python"]},
)  # fmt: skip
WRITE: Final = function("files.write", "content", "path", "content", path=TEXT, content=TEXT)
COMMIT: Final = function(
    "git.commit", "message", "message", message=TEXT, most={"type": "integer"},
    files={"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
)  # fmt: skip
DIFF: Final = function("git.diff", None, old=TEXT, path=TEXT)
READ: Final = function("files.read", None, "path", path=TEXT, first={"type": "integer"})
FETCH: Final = function("web.fetch", "url", "url", url=TEXT, most={"type": "integer"})
SEND: Final = function("mail.send", "text", "to", "text", to=TEXT, subject=TEXT, text=TEXT)
TABLE: Final[dict[str, Value]] = {"x": text_value("from x")}

SPECS: Final = {
    spec.name: spec
    for spec in (COMMIT, DIFF, RUN, WRITE, READ, FETCH, SEND, CALL, SHOW, WAIT, RECALL, REMEMBER)
}


def bound(text: str) -> Bound | Mistake:
    """What a block, without its fences, binds to."""
    info, newline, body = text.partition("\n")
    return read_action(SPECS[info.split()[0]], info, body if newline else None, TABLE)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        # As the grammar says: nothing is read otherwise.
        ("shell.run timeout=5\nls -la", {"timeout": 5, "command": "ls -la"}),
        ("shell.run\nname: value\nls", {"command": "name: value\nls"}),
        ("files.write path=a.yml\npath: b\nmode: c", {"path": "a.yml", "content": "path: b\nmode: c"}),
        ("CALL writer\nrole: who you are\nWrite.", {"name": "writer", "message": "role: who you are\nWrite."}),
        ("RECALL what: the thing", {"query": "what: the thing"}),
        ("WAIT a b timeout: 60", {"names": "a b", "timeout": 60}),
        ("WAIT any --timeout 60", {"names": "any", "timeout": 60}),
        ("SHOW x y", {"name": "x y"}),
        ("SHOW x lines: 1-40", {"name": "x", "lines": "1-40"}),
        ("CALL writer intent: 0\nWrite.", {"name": "writer", "intent": 0, "message": "Write."}),
        ("CALL writer role: a careful reader\nGo.", {"name": "writer", "role": "a careful reader", "message": "Go."}),
        ('files.write path=a.json\n{"path": "b"}', {"path": "a.json", "content": '{"path": "b"}'}),
        # JSON.
        ('shell.run {"command": "ls", "timeout": 20}', {"command": "ls", "timeout": 20}),
        ('shell.run\n{"command": "ls", "timeout": 20}', {"command": "ls", "timeout": 20}),
        ('shell.run {"cmd": "ls"}', {"command": "ls"}),
        ('files.write {"path": "a", "content": "x\\ny"}', {"path": "a", "content": "x\ny"}),
        ('files.write {"path": "a"}\nx\ny', {"path": "a", "content": "x\ny"}),
        ('SHOW {"name": "x", "lines": "1-3"}', {"name": "x", "lines": "1-3"}),
        ('CALL {"name": "a", "message": "Do it.", "fork": true}', {"name": "a", "message": "Do it.", "fork": True}),
        # Other marks.
        ("shell.run timeout: 20\nls", {"timeout": 20, "command": "ls"}),
        ("shell.run timeout:20\nls", {"timeout": 20, "command": "ls"}),
        ("shell.run --timeout 20 --background\nls", {"timeout": 20, "background": True, "command": "ls"}),
        ("shell.run --timeout=20\nls", {"timeout": 20, "command": "ls"}),
        ("files.read path: a/b.txt, first: 3", {"path": "a/b.txt", "first": 3}),
        ("files.read file=a.txt", {"path": "a.txt"}),
        ("files.read filename: a.txt", {"path": "a.txt"}),
        ("files.write file_path=a\nx", {"path": "a", "content": "x"}),
        # Truth and numbers.
        ("shell.run background=yes\nls", {"background": True, "command": "ls"}),
        ("shell.run background=True\nls", {"background": True, "command": "ls"}),
        ("shell.run background=off\nls", {"background": False, "command": "ls"}),
        ('shell.run timeout="5"\nls', {"timeout": 5, "command": "ls"}),
        # Quotes forgotten.
        ("CALL analyst role=a careful statistician\nFit.", {"name": "analyst", "role": "a careful statistician", "message": "Fit."}),
        ("CALL analyst role=the user's friend\nFit.", {"name": "analyst", "role": "the user's friend", "message": "Fit."}),
        ("CALL analyst role=a careful man intent=0\nFit.", {"name": "analyst", "role": "a careful man", "intent": 0, "message": "Fit."}),
        ("mail.send to=a@b.c subject=It's done, all of it\nHello", {"to": "a@b.c", "subject": "It's done, all of it", "text": "Hello"}),
        ("CALL name=analyst role=a careful\nFit.", {"name": "analyst", "role": "a careful", "message": "Fit."}),
        ("CALL role=careful analyst\nFit.", {"name": "analyst", "role": "careful", "message": "Fit."}),
        ("git.diff path=tool HEAD~1..HEAD", {"path": "tool", "old": "HEAD~1..HEAD"}),
        ("files.write path=a b.txt\nx", {"path": "a b.txt", "content": "x"}),
        # The body on the first line.
        ("shell.run ls -la 'a b'", {"command": "ls -la 'a b'"}),
        ('shell.run "ls -la"', {"command": "ls -la"}),
        ("shell.run X=1 make", {"command": "X=1 make"}),
        ("shell.run timeout=5 ls -la", {"timeout": 5, "command": "ls -la"}),
        ('web.fetch "https://a.example" most=5', {"url": "https://a.example", "most": 5}),
        ("web.fetch https://a.example/x?y=1", {"url": "https://a.example/x?y=1"}),
        ("web.fetch https://a.example/x\n", {"url": "https://a.example/x"}),
        ("REMEMBER The user likes tea.", {"text": "The user likes tea."}),
        # A list of words without brackets.
        ("git.commit files=a.py\nFix", {"files": ["a.py"], "message": "Fix"}),
        ('git.commit files="a b.py"\nFix', {"files": ["a b.py"], "message": "Fix"}),
        ("git.commit limit=5\nFix", {"most": 5, "message": "Fix"}),
        ("git.commit files=a.py,b.py\nFix", {"files": ["a.py", "b.py"], "message": "Fix"}),
        # In the first lines of the body.
        ("files.read\npath: a.txt\nfirst: 3", {"path": "a.txt", "first": 3}),
        ("files.read\npath=a.txt", {"path": "a.txt"}),
        ("files.write\npath: a.md\n\n# Title", {"path": "a.md", "content": "# Title"}),
        ("files.write\npath: a.md\ncontent: |\n  # Title\n    x", {"path": "a.md", "content": "# Title\n  x"}),
        ("files.write\npath: a.md\ncontent:\n# Title", {"path": "a.md", "content": "# Title"}),
        ("shell.run\ntimeout: 20\nls", {"timeout": 20, "command": "ls"}),
        ("REMEMBER\nkind: preference\nThe user likes tea.", {"kind": "preference", "text": "The user likes tea."}),
        ("web.fetch\nurl: https://a.example", {"url": "url: https://a.example"}),
    ],
)  # fmt: skip
def test_what_arguments_are_read_as(text: str, arguments: dict[str, JSON]) -> None:
    found = bound(text)
    assert isinstance(found, Bound), found
    assert json.dumps(dict(found.arguments), sort_keys=True) == json.dumps(arguments, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shell.run timeout=soon\nls", "parameter `timeout` expects number, not \"soon\""),
        ("shell.run dance=5\nls", "it has no parameter `dance`"),
        ("shell.run timeuot=5", "it has no parameter `timeuot`"),
        ("shell.run timeout=5 X=1", "it has no parameter `X`"),
        ("files.read path=a.txt lines=1-2", "it has no parameter `lines`"),
        ("shell.run command=ls\npwd", "parameter `command` is given on the first line and in the body"),
        ('shell.run {"command": "ls"}\npwd', ""),
        ("files.read\nthe file a.txt", "it takes no body"),
        ("CALL writer timeout: 300\nWrite.", "it has no parameter `timeout`; to limit how long you wait, write CALL_ASYNC"),
        ("CALL writer timeout=300\nWrite.", "then `WAIT name timeout=60`"),
        ("CALL writer tools: [\"files.read\"]\nWrite.", "it has no parameter `tools`; to give a child only some"),
        ("CALL writer max_turns=5\nWrite.", "it has no parameter `max_turns`; a child stops when"),
        ("CALL writer dance: 5\nWrite.", "it has no parameter `dance`"),
        ("CALL writer quickly\nWrite.", "\"quickly\" is one positional argument too many"),
        ("files.write a.txt hello there", "\"hello\" is one positional argument too many"),
        ("mail.send\nHello", "parameter `to` of type string is missing"),
        ('files.read path="a', "the argument `path` can't be read"),
    ],
)  # fmt: skip
def test_what_fits_no_reading_is_answered(text: str, told: str) -> None:
    found = bound(text)
    assert isinstance(found, Mistake)
    assert told in found.sentence


def test_a_variable_inside_of_an_object_is_passed() -> None:
    found = bound('files.write {"path": "a", "content": "$x"}')
    assert isinstance(found, Bound)
    assert found.attached == {"content": TABLE["x"]}
