"""The options of `iact gate …`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.options import INTENTS, Commands

if TYPE_CHECKING:
    from iact.settings import Settings


def add_gate(commands: Commands) -> None:
    """Add the group `gate`."""
    gate = commands.group("gate", "Explain why calls are allowed or denied.")
    one = commands.add("explain", _explain, "Explain the decision about the call at record N.", gate)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("n", type=int, metavar="N")
    one.add_argument("--json", action="store_true")
    one = commands.add("test", _test, "Say whether a call would be allowed, without making it.", gate)
    one.add_argument("function", metavar="FUNCTION")
    one.add_argument("given", nargs="*", metavar="key=value")
    one.add_argument("--body", metavar="TEXT")
    one.add_argument("--workspace", choices=("scratch", "live"), default="scratch")
    one.add_argument("--scope", metavar="NAME", default="default")
    one.add_argument("--intent", metavar="0|1|2", default="1", help=INTENTS)
    one.add_argument("--json", action="store_true")


def _explain(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import gate, journals

    return gate.explain(journals.find(settings, chosen.journal), chosen.n, as_json=chosen.json)


def _test(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import gate

    return gate.test(
        settings,
        chosen.function,
        chosen.given,
        body=chosen.body,
        workspace=chosen.workspace,
        scope=chosen.scope,
        intent=chosen.intent,
        as_json=chosen.json,
    )
