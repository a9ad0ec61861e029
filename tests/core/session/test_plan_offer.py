"""When an agent is told all that PLAN can do: when it is asked for a plan, in whatever language, and not for a list."""

from __future__ import annotations

import pytest

from iact.core.language.actions import DEPLOY, LOAD, PLAN, SKILL
from iact.core.tree.named_functions import named

ACTIONS = (PLAN, LOAD, DEPLOY, SKILL)


def asked(text: str, *kept: str) -> list[str]:
    return named(text, ACTIONS, kept_plans=kept)


@pytest.mark.parametrize(
    "text",
    [
        "Make a plan for the release.",
        "Please do this as a plan: read a, then b.",
        "Use PLAN.",
        "We need a workflow.",
        "Fetch the four pages (in parallel).",
        "I'd like this to run as a reflective plan called 'sorting'.",
        "Mach das als Plan.",
        "Mach das bitte als reflektierenden Plan.",
        "Lies alle vier Dateien, bitte parallel!",
        "Fais-le en parallèle.",
        "Hazlo como un plan.",
        "Leggili in parallelo.",
        "Faça isso em paralelo.",
        "Zrób to równolegle.",
        "Сделай это параллельно.",
        "请并行读取这四个文件。",
        "計画として実行してください。",
    ],
)
def test_whoever_asks_for_a_plan_gets_its_documentation(text: str) -> None:
    assert asked(text) == ["PLAN"]


@pytest.mark.parametrize(
    "text",
    [
        "Deploy.",
        "A module that counts words, please. Deploy it.",
        "There is an action DEPLOY. Please do it.",
        "make a tool that counts words",
        "Write a module for it!",
        "Schreib ein Modul dafür.",
        "Crée un outil pour ça.",
        "Crea una herramienta.",
        "写一个工具来统计。",
        "ツールを作ってください。",
    ],
)
def test_whoever_asks_for_a_tool_gets_the_documentation_of_deploy(text: str) -> None:
    assert asked(text) == ["DEPLOY"]


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Read a.txt and b.txt.",
        "1. Read a\n2. Read b\n3. Compare them",
        "Our plan costs 20 dollars a month.",
        "Two parallel lines never meet.",
        "Run `for f in *; do wc $f; done; date`",
        "Explain this:\n```sh\nmake a plan; deploy it in parallel\n```",
        "Fix ./deploy.sh and the deployment.yaml, which was deployed yesterday.",
        "Write a Python module that parses dates.",
    ],
)
def test_ordinary_words_ask_for_nothing(text: str) -> None:
    assert asked(text) == []


def test_a_kept_plan_is_asked_for_by_its_name() -> None:
    assert asked("Do the Monthly-Report again.", "monthly-report") == ["PLAN"]
    assert asked("Do the monthly-reports again.", "monthly-report") == []
