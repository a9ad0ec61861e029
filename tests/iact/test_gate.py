"""`iact gate test` and `iact gate explain`, below the command line's parser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from iact.commands import gate
from iact.core.errors import UsageError
from iact.core.gate import policy_file
from iact.core.journal import read_journal
from iact.doctor import Check
from iact.settings import Settings, load
from tests.core.session.fakes import replies, runtime
from tests.core.session.test_clearance import question


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(data=str(tmp_path), environment={"IACT_SANDBOX": "off"})


def ask(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    function: str,
    *given: str,
    body: str | None = None,
    workspace: Literal["scratch", "live"] = "live",
    scope: str = "default",
    intent: int = 1,
) -> dict[str, object]:
    status = gate.test(
        settings, function, given, body=body, workspace=workspace, scope=scope, intent=intent, as_json=True
    )
    assert status == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    assert set(answer) == {"allow", "by", "impact", "reason"}
    return answer


@pytest.fixture(autouse=True)
def overlays(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Says whether a directory of the user's can be overlaid here; without being called, it can't."""

    def possible(ok: bool) -> None:
        monkeypatch.setattr(gate, "overlays", lambda _: Check("live", ok, ""))

    possible(False)
    return possible


@pytest.mark.parametrize(
    ("body", "intent", "allow", "impact", "waits"),
    [
        ("git status", 0, True, 0, False),
        ("git status", 1, True, 1, True),
        ("rm -rf build", 1, True, 1, True),
        ("rm -rf build", 0, True, 0, False),
        ("ls", 1, True, 0, False),
    ],
)
def test_what_really_happens_in_a_directory_that_is_overlaid(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    overlays: Callable[[bool], None],
    body: str,
    intent: int,
    allow: bool,
    impact: int,
    waits: bool,
) -> None:
    """With an overlay and layers: what can write runs in the overlay, and what a reader runs in its layer."""
    overlays(True)
    monkeypatch.setattr(gate, "layers_of", lambda data, backend: object())
    said = ask(settings, capsys, "shell.run", body=body, intent=intent)
    assert (said["allow"], said["impact"]) == (allow, impact)
    assert ("waits for you" in str(said["reason"])) is waits
    in_layer = intent == 0 and body != "ls"
    assert ("layer that is thrown away" in str(said["reason"])) is in_layer


@pytest.mark.parametrize(
    ("body", "workspace", "intent", "allow", "impact"),
    [
        ("ls | wc -l", "live", 0, True, 0),
        ("mkdir x", "live", 0, False, 1),
        ("mkdir x", "live", 1, True, 1),
        ("rm -rf /", "live", 1, False, 2),
        ("rm -rf /", "live", 2, True, 2),
        ("rm -rf /", "scratch", 1, True, 1),
        ("rm -rf /", "scratch", 0, False, 1),
    ],
)
def test_the_shell(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    body: str,
    workspace: Literal["scratch", "live"],
    intent: int,
    allow: bool,
    impact: int,
) -> None:
    answer = ask(settings, capsys, "shell.run", body=body, workspace=workspace, intent=intent)
    assert (answer["allow"], answer["impact"], answer["by"]) == (allow, impact, "impact")


def test_an_unknown_function_is_not_believed(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(settings, capsys, "new.thing", "a=1")["impact"] == 2
    assert ask(settings, capsys, "new.thing", "a=1", workspace="scratch")["impact"] == 1


def test_scopes_of_the_policy_file(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    text = "[scope.look]\nfunctions = ['shell.*']\ncaps = { '*' = 0 }\n[scope.none]\nfunctions = []\n"
    (settings.data / policy_file.FILE).write_text(text, encoding="utf-8")
    assert ask(settings, capsys, "shell.run", body="ls", scope="look")["allow"] is True
    assert ask(settings, capsys, "shell.run", body="mkdir x", scope="look")["by"] == "impact"
    assert ask(settings, capsys, "shell.run", body="ls", scope="none")["by"] == "scope"
    with pytest.raises(UsageError, match="no scope 'other'"):
        ask(settings, capsys, "shell.run", body="ls", scope="other")
    (settings.data / policy_file.FILE).write_text("lockdown = true", encoding="utf-8")
    assert ask(settings, capsys, "shell.run", body="ls")["by"] == "lockdown"


@pytest.mark.parametrize(
    ("function", "given"), [("shell", ()), ("shell.run", ("novalue",)), ("shell.run", ("=x",))]
)
def test_wrong_usage(settings: Settings, function: str, given: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        gate.test(
            settings, function, given, body=None, workspace="live", scope="default", intent=1, as_json=True
        )


# --- explain ----------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A session with a call that a person allowed, one that the intent denied, and one that is still asked about."""

    async def main() -> Path:
        policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
        script = {"/": ["```WRITE\na\n```\n```t.destroy\nb\n```\n```WRITE\nc\n```", "Done."]}
        async with runtime(tmp_path / "data", replies(script), policy=policy) as opened:
            session = await opened.open(intent=1)
            said = await session.say("Go")
            first = await question(session, said.n)
            await session.clear(first, True)
            await question(session, first)
            return session.journal

    return asyncio.run(main())


def explained(journal: Path, n: int, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert gate.explain(journal, n, as_json=True) == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_a_decision_is_explained_from_every_record_about_its_call(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = read_journal(journal).records
    first = [one for one in records if one.fields.get("action") == 0]
    assert [one.kind for one in first] == ["clearance", "clearance", "gate", "call", "result"]
    answers = [explained(journal, one.n, capsys) for one in first]
    assert all(one == answers[0] for one in answers)
    assert answers[0]["allow"] is True
    assert answers[0]["by"] == "clearance"
    assert answers[0]["asked"] == {
        "to": "person", "rule": "clearance", "reason": "Clearance is needed for t.write.",
        "provenance": {"text": ["model"]}, "read": [],
    }  # fmt: skip
    gate.explain(journal, first[0].n, as_json=False)
    assert "the person was asked; text from model." in capsys.readouterr().out


def test_a_denial_is_explained(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = read_journal(journal).records
    denied = next(one for one in records if one.fields.get("action") == 1 and one.kind == "result")
    answer = explained(journal, denied.n, capsys)
    assert (answer["allow"], answer["by"], answer["impact"]) == (False, "impact", 2)
    gate.explain(journal, denied.n, as_json=False)
    assert "t.destroy by / was denied by impact, impact 2." in capsys.readouterr().out


def test_what_has_no_decision_says_so(journal: Path) -> None:
    records = read_journal(journal).records
    with pytest.raises(UsageError, match="There is no decision yet"):
        gate.explain(journal, [one for one in records if one.kind == "clearance"][-1].n, as_json=True)
    with pytest.raises(UsageError, match="is a say without a decision"):
        gate.explain(journal, 2 if records[1].kind == "say" else 3, as_json=True)
    with pytest.raises(UsageError, match="no record 999"):
        gate.explain(journal, 999, as_json=True)


def test_a_call_that_a_person_would_be_asked_about_says_so(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "[scope.default]\nfunctions = ['*']\nclearance = ['shell.*']\n"
    (settings.data / policy_file.FILE).write_text(text, encoding="utf-8")
    answer = ask(settings, capsys, "shell.run", body="ls")
    assert (answer["allow"], answer["by"]) == (False, "clearance")
    assert str(answer["reason"]).startswith("A person would be asked.")
