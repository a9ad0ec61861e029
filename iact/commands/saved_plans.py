"""Commands about saved plans, and about plans of a session on a server: `plan templates`, `show` and `save`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence

from iact.commands import remote
from iact.commands.plan_files import values_in
from iact.core.ports import JSON
from iact.core.stored.templates import Template, Templates
from iact.settings import Settings


def templates(settings: Settings, name: str | None, *, as_json: bool) -> int:
    """List the saved plans, or describe one.

    Raises:
        UsageError: there is none of this name, or it can't be used.
    """
    kept = Templates(settings.data)
    if name is not None:
        _describe(name, kept.template(name), as_json=as_json)
        return 0
    names = kept.names()
    if as_json:
        print(json.dumps(names))
    elif names:
        print("\n".join(kept.lines()))
    else:
        print(
            "No plans are saved yet. Save one with `iact plan save` or in the page's plan view.",
            file=sys.stderr,
        )
    return 0


def _describe(name: str, template: Template, *, as_json: bool) -> None:
    if as_json:
        parameters: list[JSON] = [
            {
                "name": one.name,
                "kind": one.kind,
                "was": one.example,
                "default": one.default,
                "about": one.about,
            }
            for one in template.parameters
        ]
        report = {"name": name, "goal": template.goal, "parameters": parameters}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    print(f"{name} {template.line}".rstrip())
    if template.goal:
        print(template.goal)
    for one in template.parameters:
        was = f"it was {one.shown(one.example)}" if one.example is not None else ""
        otherwise = f"{one.shown(one.default)} if it is left out" if one.default is not None else ""
        facts = ", ".join(filter(None, (one.kind, was, otherwise, one.about)))
        print(f"  {one.name}: {facts}")


def show(settings: Settings, session: str, path: str, *, as_json: bool) -> int:
    """Print a plan of a session running on the server, as a person would write it."""
    answer = remote.ask_session(settings, session, {"type": "plan.text", "path": path})
    text = str(answer.get("text", ""))
    print(json.dumps({"text": text}, ensure_ascii=False) if as_json else text.rstrip("\n"))
    return 0


def save(
    settings: Settings, session: str, path: str, name: str, parameters: Sequence[str], *, as_json: bool
) -> int:
    """Save a plan of a session running on the server, and print its file.

    `parameters`: values of the plan to leave open, as NAME=VALUE. Without any, those that could be are listed.
    """
    marked: dict[str, JSON] = {**values_in(parameters)}
    frame: remote.Frame = {"type": "plan.save", "path": path, "name": name, "parameters": marked}
    answer = remote.ask_session(settings, session, frame)
    if not marked:
        offered = remote.ask_session(settings, session, {"type": "plan.offers", "path": path})
        _tell_offers(offered.get("list"))
    print(json.dumps({"file": answer.get("file")}, ensure_ascii=False) if as_json else answer.get("file"))
    return 0


def _tell_offers(offered: JSON) -> None:
    """Say which values of a saved plan could be left open."""
    pairs = (
        [f"{one['name']}={one['value']}" for one in offered if isinstance(one, dict)]
        if isinstance(offered, list)
        else []
    )
    if pairs:
        options = " ".join(f"--parameter {shlex.quote(pair)}" for pair in pairs)
        print(
            f"note: all its values are fixed. To give others when it is used, save it with some of: {options}",
            file=sys.stderr,
        )
