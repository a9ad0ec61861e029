"""Documentation by use: what brings a note, what brings none, and that it comes once until a cut."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.models.roles import Models
from iact.core.modules.manifest import Manifest
from iact.core.ports import ChatMessage
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import (
    Asked,
    FakeModules,
    Script,
    ScriptedModel,
    TickingClock,
    World,
    replies,
)
from tests.core.session.shipped import ShippedHost
from tests.sealing import give_key

_NOTE = re.compile(r"^Documentation of `([^`]+)`", re.MULTILINE)

WEATHER = Manifest.model_validate(
    {
        "name": "weather",
        "keywords": ("rain", "sun"),
        "functions": [
            {
                "name": name,
                "summary": "About the weather.",
                "documentation": "Takes a place.\nGives degrees.\n\nAnd more that few need.",
                "schema_text": '{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer",'
                '"default":3}},"required":["place"]}',
                "body": "place",
            }
            for name in ("forecast", "history", "stations", "alerts", "maps")
        ],
    }
)
"""A module of the user's."""


class Reads(FakeModules):
    """Every function works and gives back what it was given."""


def talk(
    data: Path,
    script: Script | dict[str, list[str]],
    *says: str,
    context: int = 1_000_000,
    before: Callable[[Session], object] | None = None,
) -> list[Asked]:
    """The contexts of a session, which was verified, with all shipped modules and `weather`."""
    give_key(data)
    model = ScriptedModel(script if callable(script) else replies(script), context=context)

    async def main() -> Path:
        async with Runtime(
            data,
            Models({"smart": model}),
            ShippedHost(WEATHER),
            clock=TickingClock(),
            open_modules=lambda host, session, workspace: Reads(World()),
        ) as opened:
            session = await opened.open()
            if before is not None:
                await before(session)  # type: ignore[misc]
            for text in says or ("Go",):
                await session.ask(text)
            return session.journal

    replay(asyncio.run(main()), verify=True)
    return model.asked


def notes(message: ChatMessage | str) -> list[str]:
    """The notes in a message, without those that stand in every first message."""
    text = message if isinstance(message, str) else message.content
    return _NOTE.findall(text.partition("You are agent ")[2] or text)


def told(data: Path, text: str) -> list[str]:
    """The notes that a message of the user brings."""
    return notes(talk(data, {"/": ["Done."]}, text)[0].messages[1])


# --- 1: named -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "brought"),
    [
        ("Use web.fetch for that.", ["web.fetch"]),
        ("Read it with `web.fetch`, please.", ["web.fetch"]),
        ("Do you know WEB.FETCH?", ["web.fetch"]),
        ("(python.run)", ["python.run"]),
        ("Use git.", ["git.status"]),
        ("Commit it with git!", ["git.commit"]),
        ("Use the sql module.", ["sql.query", "sql.run", "sql.tables"]),
        ("Ask it in SQL.", ["sql.query"]),
        ("Nimm das sql-Modul.", ["sql.query", "sql.run", "sql.tables"]),
        ("用sql模块查询。", ["sql.query", "sql.run", "sql.tables"]),
        ("Ask the weather: forecast for Oslo?", ["weather.forecast"]),
        ("The python module, please.", ["python.run"]),
        ("Deploy it.", ["DEPLOY"]),
        ("There is an action DEPLOY. Please do it.", ["DEPLOY"]),
        ("Do that as a plan, please.", ["PLAN"]),
        ("Let a child check it (CALL checker); then WAIT, and REMEMBER it.", []),
        ("Use sql.run and web.fetch; do it in parallel.", ["web.fetch", "sql.run", "PLAN"]),
    ],
)
def test_what_a_person_names_is_documented(tmp_path: Path, text: str, brought: list[str]) -> None:
    assert told(tmp_path, text) == brought


@pytest.mark.parametrize(
    "text",
    [
        "Compare https://a.example.org/docs/x and http://b.example.org/git.",
        "Write a Python module and a shell function; then a web tool.",
        "Write a Python script that lists the files in docs/ and opens app.py in a browser.",
        "The web page needs a shell around it.",
        "Read /srv/sql/git.txt and ./web.py and dump.sql.",
        "Count the rides in orders.csv.",
        "Fix this:\n```\nuse web.fetch and git and sql.query\n```",
        "It says:\nTraceback (most recent call last):\n  File x, in git\n    web.fetch()\nValueError: sql",
        "What is the plan of the house? There are parallel lines.",
        "The gitignore has mysql in it, and web.fetchall.",
        "Will there be rain?",
    ],
)
def test_ordinary_words_bring_nothing(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


def test_a_child_is_told_what_its_caller_names(tmp_path: Path) -> None:
    script = {"/": ["```CALL a\nFetch it with web.fetch.\n```", "Done."], "/a": ["Done."]}
    asked = talk(tmp_path, script)
    assert notes(next(one for one in asked if one.path == "/a").messages[1]) == ["web.fetch"]
    assert [notes(one.newest) for one in asked if one.path == "/"] == [[], []], "not those who say it"


def test_a_note_comes_once(tmp_path: Path) -> None:
    asked = talk(tmp_path, {"/": ["A.", "B.", "C."]}, "Use web.fetch.", "web.fetch again.", "web.search?")
    assert [notes(one.newest) for one in asked] == [["web.fetch"], [], ["web.search"]]


def test_what_every_first_message_has_is_known(tmp_path: Path) -> None:
    assert told(tmp_path, "Use shell.run, files.read, files.write, files.edit, or BASH.") == []


def test_the_best_three_come_and_the_rest_is_named(tmp_path: Path) -> None:
    text = "Use files.list, files.search, files.diff, web.fetch and web.search."
    (asked,) = talk(tmp_path, {"/": ["Done."]}, text)
    assert notes(asked.newest) == ["files.list", "files.search", "files.diff"]
    assert "`HELP web.search, web.fetch` tells how to use these, too." in asked.newest


def test_the_rest_of_a_module_that_stands_in_no_list_comes_with_signatures(tmp_path: Path) -> None:
    (asked,) = talk(tmp_path, {"/": ["Done."]}, "Commit with git.")
    assert notes(asked.newest) == ["git.commit"]
    assert "\n```\ngit.commit <message> path=. files=[]\n" in asked.newest.replace("````", "```"), (
        "the note has its own"
    )
    assert "- `git.status path=.` · " in asked.newest
    assert "- `git.clone <url> path=" in asked.newest


def test_a_name_says_more_than_a_module_and_a_module_more_than_a_mention(tmp_path: Path) -> None:
    assert told(tmp_path / "1", "Do it as a plan, with the sql module and web.fetch.") == [
        "web.fetch", "PLAN", "sql.query",
    ]  # fmt: skip
    assert told(tmp_path / "2", "With git, then sql.query, in parallel.") == [
        "sql.query",
        "PLAN",
        "git.status",
    ]


# --- what brings none -----------------------------------------------------------------------------------


def test_results_replies_and_uploads_name_nothing(tmp_path: Path) -> None:
    words = "Use web.fetch, git.commit and the sql module; do it as a plan."
    script = {
        "/": [f"```weather.forecast\n{words}\n```", "```CALL a\nSay it.\n```", "One.", "Two."],
        "/a": [words],
    }

    async def upload(session: Session) -> None:
        await session.upload("notes.txt", "text/plain", words.encode())

    asked = talk(tmp_path, script, "Go", "And?", before=upload)
    assert any(words in one.newest for one in asked), "it was read"
    assert [notes(one.newest) for one in asked] == [[]] * len(asked)


# --- 2: refused for its form ----------------------------------------------------------------------------


def test_a_call_that_was_refused_for_its_form_is_documented_in_the_same_feedback(tmp_path: Path) -> None:
    wrong = "```web.fetch depth=2\nhttps://a.example.org\n```"
    asked = talk(tmp_path, {"/": [wrong, wrong.replace("2", "3"), "Done."]})
    (refused, again) = (one.newest for one in asked[1:])
    assert "`web.fetch` was not run: it has no parameter `depth`" in refused
    assert "It is used so: `web.fetch <url> " in refused
    assert notes(refused) == ["web.fetch"]
    assert refused.index("no parameter") < refused.index("It is used so") < refused.index("Documentation of")
    assert "It is used so: `web.fetch <url> " in again
    assert notes(again) == [], "it has read it"


def test_a_wrong_value_is_named_with_its_parameter(tmp_path: Path) -> None:
    asked = talk(tmp_path, {"/": ["```web.fetch start=soon\nhttps://a.example.org\n```", "Done."]})
    assert "`start`" in asked[1].newest
    assert "soon" in asked[1].newest
    assert notes(asked[1].newest) == ["web.fetch"]


def test_a_plan_that_can_not_be_read_brings_all_about_plans(tmp_path: Path) -> None:
    asked = talk(tmp_path, {"/": ["```PLAN p\nsteps: nonsense\n```", "Done."]})
    assert notes(asked[1].newest) == ["PLAN"]
    assert "contract" in asked[1].newest


# --- 4: a state -----------------------------------------------------------------------------------------
# The state machine of tests is in test_offers.py.


# --- 5: an upload ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "media", "brought"),
    [
        ("orders.csv", "text/csv", ["python.run", "sql.query"]),
        ("orders.csv", "application/octet-stream", ["python.run", "sql.query"]),
        ("orders.parquet", "application/octet-stream", ["python.run", "sql.query"]),
        ("paper.pdf", "application/pdf", ["docs.read"]),
        ("letter.docx", "application/octet-stream", ["docs.read"]),
        ("notes.txt", "text/plain", []),
        ("cat.png", "image/png", []),
    ],
)
def test_a_file_brings_what_reads_its_kind(tmp_path: Path, name: str, media: str, brought: list[str]) -> None:
    async def upload(session: Session) -> None:
        await session.upload(name, media, b"a,b\n1,2\n")

    (asked,) = talk(tmp_path, {"/": ["Done."]}, "What is in it?", before=upload)
    assert notes(asked.newest) == brought


# --- after a cut ----------------------------------------------------------------------------------------


def test_after_a_cut_the_notes_of_what_was_used_come_again_in_short(tmp_path: Path) -> None:
    """What the agent did not use is forgotten, and may come again; what its first message has stays there."""
    turns = iter(
        [
            "Hello.",
            "```weather.forecast\n" + "Oslo " * 400 + "\n```",
            *(["```shell.run\nls\n```"] * 3),
            "```REMEMBER kind=fact\nIt rains.\n```",
            "```COMPRESS\nThe task: the weather of Oslo. All is well.\n```",
            "Done.",
            "Done again.",
        ]
    )
    asked = talk(
        tmp_path,
        lambda asked: next(turns),
        "Use web.fetch.",
        "Use weather.forecast, weather.maps.",
        "weather.maps?",
    )
    assert notes(asked[0].newest) == ["web.fetch"]
    assert notes(asked[1].newest) == ["weather.forecast", "weather.maps"]

    cut = next(one for one in asked if "Your history was cut." in one.newest)
    assert "Documentation of `web.fetch`" in cut.messages[1].content, "the first message stays"
    assert notes(cut.newest) == ["weather.forecast"], (
        "shell.run stands in the first message, REMEMBER in the static prompt; maps was not used"
    )
    assert "Documentation of `weather.forecast`, in short:\n" in cut.newest
    assert "weather.forecast <place> days=3\nTakes a place.\nGives degrees.\n```" in cut.newest
    assert "And more that few need." not in cut.newest
    assert notes(asked[-1].newest) == ["weather.maps"], "what was forgotten is told again when it is named"


# --- 3: HELP --------------------------------------------------------------------------------------------


def helped(data: Path, what: str, *, then: str = "And?") -> list[str]:
    """What an agent reads for HELP, and with the next message."""
    asked = talk(data, {"/": [f"```HELP {what}\n```", "Done.", "Done."]}, "Go", then)
    return [one.newest for one in asked[1:]]


@pytest.mark.parametrize("what", ["web.fetch", "name=web.fetch", "Web.Fetch", '"web.fetch"', "\nweb.fetch"])
def test_help_tells_all_about_a_function_and_it_is_known_then(tmp_path: Path, what: str) -> None:
    page, after = helped(tmp_path, what, then="Use web.fetch.")
    assert notes(page) == ["web.fetch"]
    assert "- `web.fetch <url> " in page
    assert notes(after) == [], "it has just been read"


def test_help_tells_again_what_was_told(tmp_path: Path) -> None:
    page, _ = helped(tmp_path, "shell.run")
    assert notes(page) == ["shell.run"]
    assert notes(helped(tmp_path / "bash", "bash")[0]) == ["shell.run"], "by its alias"


def test_help_lists_a_module(tmp_path: Path) -> None:
    page, after = helped(tmp_path, "git", then="Use git.commit")
    assert page.startswith("The module `git`: ")
    assert "- `git.commit <message> path=. files=[]` · " in page
    assert notes(page) == []
    assert notes(after) == ["git.commit"]


def test_help_tells_about_actions_and_the_language(tmp_path: Path) -> None:
    assert notes(helped(tmp_path / "1", "plan")[0]) == ["PLAN"]
    assert notes(helped(tmp_path / "2", "CALL")[0]) == ["CALL"]
    assert "`VAR <value> name" in helped(tmp_path / "3", "VAR")[0], "it has no more to tell"
    assert notes(helped(tmp_path / "4", "language")[0]) == ["language"]


def test_help_answers_several_names(tmp_path: Path) -> None:
    page, _ = helped(tmp_path, "web.fetch, sql.query sql.tables")
    assert notes(page) == ["web.fetch", "sql.query", "sql.tables"]


def test_help_alone_lists_everything(tmp_path: Path) -> None:
    page, _ = helped(tmp_path, "")
    for name in ("CALL", "WAIT", "DEPLOY", "HELP", "shell.run", "git.commit", "weather.maps", "shell.jobs"):
        assert re.search(rf"^- `{name}[ `]", page, re.MULTILINE), name
    assert notes(page) == []
    assert "FRONTEND" not in page, "no program with tools speaks here"


def test_help_names_what_is_nearest(tmp_path: Path) -> None:
    page, _ = helped(tmp_path, "web.ftch")
    assert "There is no function, module or action `web.ftch`. The nearest: `web.fetch`" in page
    page, _ = helped(tmp_path / "2", "fetch")
    assert "`web.fetch`" in page
    page, _ = helped(tmp_path / "3", "xyzzy")
    assert "There is no function, module or action `xyzzy`. `HELP` alone lists what there is." in page


def test_help_tells_only_what_the_agent_may_use(tmp_path: Path) -> None:
    script = {
        "/": ['```CALL a scope="files.*" intent=0\nTry.\n```', "Done."],
        "/a": [
            "```HELP\n```\n\n```HELP web.fetch\n```\n\n```HELP files.write\n```\n\n```HELP files\n```",
            "Done.",
        ],
    }
    asked = talk(tmp_path, script)
    page = next(one for one in asked if (one.path, one.turn) == ("/a", 1)).newest
    assert "- `files.read path" in page
    assert "- `web.fetch" not in page
    assert "There is no function, module or action `web.fetch`." in page
    assert "`files.write` changes things. You may read, not change." in page
    assert "- `files.write" not in page
    assert "- `files.edit" not in page
