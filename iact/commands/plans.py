"""Commands about plans: `plan run`, `check`, `graph`, `explain`.

A plan is run as in a dialogue: in a session of its own, through the gate, in containers, with a journal. Nobody
plans: the steps are those of the file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.errors import IactError, SandboxError, UsageError
from core.gate.level import level
from core.journal.file import FILE
from core.language.actions import Registry
from core.modules.registry import Loaded, specs_of
from core.plan.forms import read_plan
from core.plan.model import Node, Plan, PlanError
from core.plan.modes.registry import make_mode
from core.plan.state import NodeRecord
from core.plan.validate import PlanInvalid
from core.plan.validate import check as validate
from core.ports import JSON
from core.session.replay import replay
from core.tree.plan_aim import Functions, way_of
from core.tree.plan_report import result_json
from iact.commands import catalogue, journals
from iact.commands.asking import Asking
from iact.commands.plan_drawing import draw, edges_of, layers_of, work_of
from iact.commands.plan_drawing import explain as in_words
from iact.commands.run import show_progress
from iact.settings import Settings
from iact.wiring import open_runtime, read_policies

_LARGEST: Final = 1 << 20


def read(path: str) -> tuple[str, Plan]:
    """A plan file; - is standard input.

    Raises:
        UsageError: it can't be read, or is no plan with steps.
    """
    try:
        text = sys.stdin.read(_LARGEST + 1) if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The plan {path} can't be read: {error}.") from error
    try:
        plan = read_plan(text, id="plan")
    except PlanError as error:
        raise UsageError(f"{path}: {error}.") from error
    if not plan.nodes:
        raise UsageError(f"{path} has a goal and no steps; `iact run` lets an agent plan for a goal.")
    return text, plan


def run(settings: Settings, path: str, *, mode: str, intent: str, scope: str | None, as_json: bool) -> int:
    """Run a plan to its end; 0 if it concluded, or came back with some of its results."""
    text, plan = read(path)
    return asyncio.run(_run(settings, text, plan, mode, intent, scope, as_json))


async def _run(
    settings: Settings, text: str, plan: Plan, mode: str, intent: str, scope: str | None, as_json: bool
) -> int:
    judged = any(node.contract.judgement for node in plan.nodes.values())
    async with open_runtime(settings) as runtime:
        session = await runtime.open(None, intent=intent, scope=scope)
        async with asyncio.TaskGroup() as group:
            asking = Asking(session, group.create_task)
            progress = group.create_task(show_progress(session, asking))
            try:
                with asking.listening():
                    thinks = judged or way_of(mode, plan)[0] != "static"
                    reply = await session.run_plan(text, mode=mode, thinks=thinks)
            finally:
                progress.cancel()
        done = session.state.agents[reply.agent].plan
        assert done is not None
        calls = sum(
            one.all_turns + (one.plan.asked if one.plan else 0) for one in session.state.agents.values()
        )
        used = session.state.usage()
        report = result_json(done, calls, used.prompt_tokens + used.completion_tokens)
        report |= {"session": session.id, "journal": str(session.journal)}
        if as_json:
            print(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            print(draw(work_of(done.state.plan.nodes), done.state.nodes))
            print(f"\n{reply.body}")
            print(f"journal: {session.journal}", file=sys.stderr)
        if report["status"] != "failed":
            return 0
        if as_json:
            return 1
        raise IactError("The plan failed.")


# --- without running -------------------------------------------------------------------------------------------


def check(settings: Settings, path: str, *, mode: str, as_json: bool) -> int:
    """Say whether a plan can run; 1 if not."""
    _, plan = read(path)
    functions = _functions(settings)
    problems: list[JSON] = []
    warnings: list[JSON] = []
    try:
        way, _ = way_of(mode, plan)
        warnings = [*validate(plan, functions, agents=make_mode(way).agents).warnings]
    except PlanInvalid as error:
        problems = [*error.problems]
    if as_json:
        report = {"ok": not problems, "steps": len(plan.nodes), "problems": problems, "warnings": warnings}
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        for one in warnings:
            print(f"note: {one}")
        for one in problems:
            print(one)
        if not problems:
            print(f"{path}: {len(plan.nodes)} steps in {len(layers_of(plan.nodes))} waves; it can run.")
    return 1 if problems else 0


def graph(settings: Settings, path: str, *, as_json: bool) -> int:
    """Draw a plan from its file, or the plans of a journal with what became of their steps."""
    drawn: list[tuple[str, str]] = []
    report: list[dict[str, JSON]] = []
    for name, nodes, records in _graphs(settings, path):
        drawn.append((name, draw(nodes, records)))
        graph: dict[str, JSON] = {
            "path": name,
            "layers": [[*row] for row in layers_of(nodes)],
            "edges": [[*edge] for edge in edges_of(nodes)],
        }
        if records is not None:
            graph["states"] = {one: records[one].state for one in nodes}
        report.append(graph)
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return 0
    for name, picture in drawn:
        print(f"{name}\n{picture}")
    return 0


def _graphs(
    settings: Settings, path: str
) -> list[tuple[str, Mapping[str, Node], Mapping[str, NodeRecord] | None]]:
    try:
        journal = journals.find(settings, path)
    except UsageError:
        journal = None
    if journal is None or (journal.is_file() and journal.name != FILE):
        return [(path, read(path)[1].nodes, None)]
    runs = [(one.path, one.plan) for one in replay(journal).tree.agents.values() if one.plan is not None]
    if not runs:
        raise UsageError(f"The journal {journal} holds no plan.")
    return [(name, work_of(run.state.plan.nodes), run.state.nodes) for name, run in runs]


def explain(settings: Settings, path: str, *, mode: str, intent: str, as_json: bool) -> int:
    """Say in words what a plan would do, in which order, and what could keep it from being done."""
    _, plan = read(path)
    functions = _functions(settings)
    validate(plan, functions)
    way, reason = way_of(mode, plan)
    named = read_policies(settings.data).levels
    text = in_words(plan, way, level(intent, named), functions)
    if reason:
        text = f"{text}\n\nThe mode was chosen because: {reason}"
    print(json.dumps({"mode": way, "text": text}, ensure_ascii=False) if as_json else text)
    return 0


def _functions(settings: Settings) -> Functions | None:
    """The functions of the catalogue; None, with a note, where there is no sandbox to ask."""
    try:
        modules = asyncio.run(catalogue.known_modules(settings))
    except SandboxError as error:
        print(f"note: functions were not looked at: {error}", file=sys.stderr)
        return None
    loaded = [
        Loaded(one.manifest, one.entry.digest, one.entry.origin, one.approved)
        for one in modules
        if one.manifest is not None
    ]
    return Functions(Registry([spec for one in loaded for spec in specs_of(one)]))
