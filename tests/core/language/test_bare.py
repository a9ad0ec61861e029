"""Actions that are one line without a fence are read if they name what exists; what only looks like one is told."""

from __future__ import annotations

from typing import Final

import pytest

from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.bare import Almost, Known, almost, left
from iact.core.language.rewriting import in_our_language
from iact.core.language.scanner import scan
from iact.core.language.unread import actions_in, passed_over
from iact.core.language.variables import text_value

REGISTRY: Final = Registry(
    [
        *CORE_ACTIONS.values(),
        ActionSpec(
            "files.read",
            "Read a file.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        ),
        ActionSpec("files.list", "List files."),
        ActionSpec(
            "shell.run",
            "Run a script.",
            body="command",
            parameters={
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        ),
    ]
)
KNOWN: Final = Known(("writer", "checker"), {"run_1": text_value("x"), "notes": text_value("y")})


def written(text: str, known: Known | None = KNOWN) -> str:
    return in_our_language(text, REGISTRY, known).text


def acts(text: str) -> list[str]:
    """The first lines of the actions of a reply, as the history shows them."""
    return [block.info for block in scan(written(text), REGISTRY.is_action).blocks if block.action]


def told(text: str) -> tuple[str, ...]:
    """What of a reply looks like an action and is none."""
    recorded = written(text)
    return left(recorded, scan(recorded, REGISTRY.is_action).blocks, REGISTRY)


LINES: Final = (
    "WAIT",
    "WAIT any",
    "WAIT all",
    "WAIT writer checker",
    "WAIT writer timeout=30",
    "WAIT any timeout: 30",
    "QUERY",
    "QUERY writer",
    "HELP",
    "HELP files",
    "HELP CALL",
    "HELP files.read",
    "HELP language",
    "SHOW run_1",
    "SHOW run_1 lines=1-40",
    "SHOW notes run_1",
    "SHOW run_7",
    "RECALL water",
    "RECALL station.log parser module",
    "LOAD pumplog",
    "SKILL skills/monthly-report",
    "ANSWER",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "form", ["{}", "`{}`", "**{}**", "**`{}`**", "```{}```", "- {}", "- `{}`", "1. `{}`", "  {}", "{}\n"]
)
def test_a_line_alone_is_an_action(line: str, form: str) -> None:
    assert acts(form.format(line)) == [line]
    assert told(form.format(line)) == ()


@pytest.mark.parametrize("line", LINES)
def test_a_line_beside_text_and_other_actions_is_an_action(line: str) -> None:
    text = f"I look at it first.\n\n```shell.run\nls\n```\n\nThen:\n\n`{line}`\n"
    assert acts(text) == ["shell.run", line]
    assert written(text).endswith(f"Then:\n\n```{line}\n```")


def test_a_line_directly_between_blocks_is_an_action() -> None:
    assert acts("```shell.run\nls\n```\nWAIT\n```shell.run\npwd\n```") == ["shell.run", "WAIT", "shell.run"]


def test_several_lines_are_several_actions() -> None:
    assert acts("- HELP files\n- RECALL tea pots\n- `WAIT any`") == [
        "HELP files",
        "RECALL tea pots",
        "WAIT any",
    ]


def test_a_child_that_the_same_reply_calls_can_be_waited_for() -> None:
    assert acts("```CALL_ASYNC reader\nRead it.\n```\n\nWAIT reader") == ["CALL_ASYNC reader", "WAIT reader"]


def test_a_function_in_one_line_of_code_is_called_where_nothing_follows() -> None:
    assert acts("I read it.\n\n`files.read path=a.py`") == ["files.read path=a.py"]
    assert acts("```files.read a.py```\n`files.list`") == ["files.read a.py", "files.list"]
    assert acts("Write:\n\n`files.read path=a.py`\n\nThat gives the text.") == []
    assert acts("There are:\n\n- `files.list`\n- `files.read`") == []


@pytest.mark.parametrize(
    "text",
    [
        "WAIT for the others before you start.",
        "HELP is on its way to you, they said.",
        "RECALL what the user said about tea, and then tell me what you make of it all",
        "WAIT bob",
        "HELP dox",
        "SHOW me",
        "ANSWER me",
        "> WAIT any",
        "> a quotation\nWAIT any",
        "Text.\n\n    WAIT any",
        "# HELP",
        "**HELP**\n\nAsk the people at the desk.",
        "QUERY\nselect the first of them",
        "You can use\nWAIT any\nfor that, and go on.",
        "Write `WAIT any` for the first.",
        "```text\nWAIT any\n```",
        "wait any",
        "WAITING",
        "`HELP` tells more.",
    ],
)
def test_what_is_no_such_line_stays_text(text: str) -> None:
    assert acts(text) == []
    assert written(text) == text


def test_a_line_in_the_body_of_an_action_stays_there() -> None:
    text = "```files.write path=README.md\nInstall it:\n```\nWAIT\n```\nThen use it.\n```"
    assert written(text) == text
    assert acts("```shell.run\nWAIT\nHELP files\n```") == ["shell.run"]


def test_without_what_is_known_nothing_is_read_so() -> None:
    assert written("HELP files", known=None) == "HELP files"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("HELP dox", ("HELP dox",)),
        ("WAIT bob", ("WAIT bob",)),
        ("WAIT for the others before you start.", ("WAIT for the others before you start.",)),
        ('CALL writer role="x"', ('CALL writer role="x"',)),
        ("```CALL writer```", ("CALL writer",)),
        ("CALL writer\nWrite the chapter.\nThank you.", ("CALL writer",)),
        ("COMPRESS\nTask: a\nDone: b", ("COMPRESS",)),
        ("PLAN keys\ngoal: x\nsteps: []", ("PLAN keys",)),
        ("I keep it.\n\nREMEMBER kind=fact\nTea is liked.", ("REMEMBER kind=fact",)),
        ("shell.run\nls -la", ("shell.run",)),
        ("files.read path=a.py", ("files.read path=a.py",)),
        ("```\nWAIT bob\n```", ("WAIT bob",)),
        ("Good.\n\n```remember kind=preference\nTea.\n```", ("remember kind=preference",)),
        ("Here it is.\n\nVAR x", ("VAR x",)),
        ("```shell.run\nls\n```\n\nCALL writer\nDo it.\n\n```shell.run\npwd\n```", ("CALL writer",)),
        ("```shell.run\nls\n```\n\nWAIT for both replies\n\nand so on.", ("WAIT for both replies",)),
        # What a text only mentions:
        ("CALL the doctor\nnow please.", ()),
        ("PLAN\n1. We go.\n2. We come.", ()),
        ("PLAN A\nWe go. And come back.", ()),
        ("There are:\n\n- `files.list`\n- `files.read`", ()),
        ("There are:\n\n- `HELP` for help\n- `WAIT bob`\n\nUse them.", ()),
        ("```plan\n1. We go.\n```", ()),
        ("```sql\nselect 1\n```", ()),
        ("```shell.run\nls\n```\n\nWAIT for the replies of all of them.", ()),
        ("shell.run is what you want.", ()),
        ("", ()),
    ],
)
def test_what_looks_like_an_action_and_is_none_is_found(text: str, lines: tuple[str, ...]) -> None:
    assert told(text) == lines


def test_a_block_of_commands_beside_an_action_is_told_of() -> None:
    def said(text: str) -> str:
        return passed_over(text, scan(text, REGISTRY.is_action).blocks, REGISTRY)

    run = "```shell.run\nls\n```"
    assert said(f"I look.\n\n```bash\ngit log\n```\n\n{run}") == (
        "The block ```bash was not run; write ```shell.run to run it."
    )
    assert (
        said(f"{run}\n\n```sh\npwd\n```\n\n{run}")
        == "The block ```sh was not run; write ```shell.run to run it."
    )
    assert said(f"{run}\n\n```bash\ngit log\n```") == (
        "The block ```bash was not run; write ```shell.run to run it."
    )
    assert said(f"{run}\n\n```python\nprint(1)\n```") == "", "there is no python.run"
    assert said(f"For example:\n\n```bash\ngit log\n```\n\n{run}") == ""
    assert said("```bash\n" + "ls\n" * 6 + f"```\n\n{run}") == "", "a long one is shown"
    assert said(f"```bash name=x\nls\n```\n\n{run}") == "", "it is kept under a name"
    assert said("```bash\nls\n```\n\nDone.") == ""


def test_actions_in_a_body_are_found() -> None:
    body = "old\n```\n```shell.run\nls\n```\n\n```python\n1\n```\n```files.list\n```\n```shell.run\nls\n```"
    assert actions_in(body, REGISTRY.is_action) == ("shell.run", "files.list")


def meant(text: str) -> Almost | None:
    recorded = written(text)
    return almost(recorded, scan(recorded, REGISTRY.is_action).blocks, REGISTRY)


@pytest.mark.parametrize(
    "text",
    [
        "FILES LIST",
        "FILES.LIST",
        "files list",
        "Files.list",
        "`FILES LIST`",
        "- **FILES LIST**",
        "files/list",
        "I look at what there is.\n\nFILES LIST",
        "I look at what there is.\n\n```FILES LIST\n```",
        "```files list\n```\n",
    ],
)
def test_a_function_in_another_spelling_is_known(text: str) -> None:
    assert acts(text) == []
    found = meant(text)
    assert found is not None
    assert (found.name, found.exists) == ("files.list", True)


def test_what_is_behind_a_function_in_another_spelling_is_shown() -> None:
    assert meant("FILES READ a.py") == Almost("FILES READ a.py", "files.read", exists=True)


@pytest.mark.parametrize("text", ["FIND query=tea", "files.find name=*.py", "Notes.search text=tea"])
def test_a_line_with_an_unknown_name_and_arguments_is_known(text: str) -> None:
    found = meant(text)
    assert found is not None
    assert not found.exists


@pytest.mark.parametrize(
    "text",
    [
        "BUILD PASSED",
        "It lists files.",
        "You get it with\n\n`files list`",
        "The parts:\n\nfiles list",
        "FILES LIST\n\nThat is all there is.",
        "    FILES LIST",
        "files list all that is in a folder, and no more than that.",
        "example.com",
        "a.py",
        "TODO",
        "x.y = 3",
        "price=5",
    ],
)
def test_other_last_lines_are_text(text: str) -> None:
    assert meant(text) is None
