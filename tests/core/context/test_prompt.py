"""The fixed prompt: its size, and whether what it teaches is so."""

from __future__ import annotations

import importlib.metadata
import re

import pytest
from tokenizers import Tokenizer

from iact.core.context.first_message import ESSENTIAL
from iact.core.context.prompt import LANGUAGE, STANDARD
from iact.core.context.tokens import estimate
from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.grammar import Mistake, bind, split
from iact.core.language.labels import documentation
from iact.core.language.scanner import scan
from iact.core.modules.registry import Loaded, specs_of
from iact.core.plan.forms import read_plan
from tests.core.session.shipped import manifests

MOST = 1_600
"""The most tokens of the fixed prompt with the documentation of the essential functions."""


def all_specs() -> list[ActionSpec]:
    found = list[ActionSpec]()
    for manifest in manifests():
        approved = frozenset(function.name for function in manifest.functions)
        found += specs_of(Loaded(manifest, "0" * 64, "shipped", approved))
    return found


REGISTRY = Registry([*CORE_ACTIONS.values(), *all_specs()])


def essential() -> str:
    specs = {spec.name: spec for spec in all_specs()}
    return "\n\n".join(
        documentation(spec.name, spec.alias, spec.documentation) for spec in map(specs.__getitem__, ESSENTIAL)
    )


def test_it_fits_its_budget_with_what_every_first_message_has() -> None:
    assert estimate(STANDARD.system) + estimate(essential()) <= MOST


def test_it_fits_its_budget_as_a_tokenizer_of_a_model_counts() -> None:
    """Llama's first tokenizer, which comes with the embeddings: 32,000 entries, so newer ones count less."""
    file = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
    counter = Tokenizer.from_file(str(importlib.metadata.distribution("wordllama").locate_file(file)))
    counter.no_truncation()
    counted = len(counter.encode(f"{STANDARD.system}\n\n{essential()}", add_special_tokens=False).ids)
    assert counted <= MOST
    assert counted <= estimate(STANDARD.system) + estimate(essential()), "our estimate is on the safe side"


def test_every_block_in_it_is_an_action_that_would_run() -> None:
    blocks = [block for block in scan(STANDARD.system, REGISTRY.is_action).blocks if block.action]
    assert [block.info.split()[0] for block in blocks] == ["shell.run", "CALL", "PLAN", "REMEMBER"]
    for block in blocks:
        name, arguments = taken if not isinstance(taken := split(block.info), Mistake) else ("", ())
        spec = REGISTRY.find(name)
        assert isinstance(spec, ActionSpec)
        assert not isinstance(bind(spec, arguments, block.body, {}), Mistake), block.info


def test_its_plan_has_a_goal_and_steps() -> None:
    (body,) = re.findall(r"```PLAN name\n(.*?)```", STANDARD.system, re.DOTALL)
    plan = read_plan(body, id="name")
    assert plan.goal == "Say whether our kernel has known flaws"
    assert [*plan.nodes] == ["kernel", "flaws"]


def test_every_action_that_it_names_exists() -> None:
    named = set(re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)?\b", f"{STANDARD.system}\n{LANGUAGE}"))
    assert named - CORE_ACTIONS.keys() == {"UNTRUSTED"}


@pytest.mark.parametrize(
    "said",
    [
        "directly after its fence",
        "```bash too, is only text",
        "at the margin",
        "close each",
        "longer fence",
        "in order",
        "`SHOW name lines=",
        "`HELP name`",
        "may be called once more",
        "statements, not orders",
        "ANSWER alone",
        "`WAIT any`",
        "With REMEMBER or VAR beside it",
        "share the files in /workspace",
        "Uploads are files there, and variables",
        "no shell variable",
        'names={"df": $table}',
        'key=["a","b"]',
        "DEPLOY",
        "LOAD",
        "SKILL",
        "COMPRESS",
    ],
)
def test_it_says_what_models_missed(said: str) -> None:
    assert said in STANDARD.system.replace(" \\\n", " ")


def test_it_names_no_model_because_not_every_session_has_several() -> None:
    assert "model=" not in STANDARD.system
    assert "model:" not in STANDARD.system
