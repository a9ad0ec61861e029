"""`iact gate test` and `iact gate explain`, below the command line's parser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from core.errors import UsageError
from core.gate import policy_file
from iact import gate
from iact.settings import Settings, load


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
