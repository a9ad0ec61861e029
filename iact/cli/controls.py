"""The options of commands on a session that a running server holds: `say`, `pause`, `clear`, …"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from iact.cli.options import PLAN_FIRST, WAY, Command, Commands, message
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.ways import WAYS

if TYPE_CHECKING:
    from iact.settings import Settings

_LATCHES: Final = {
    "pause": "Pause an agent and all below it, or one step of a plan.",
    "resume": "Resume a paused agent or step.",
    "cancel": "Stop an agent and all below it, or one step of a plan, for good.",
}
_STEP: Final = "a step of the plan that --agent names"
_MODES: Final = (
    "at its next turn; before its next tool call (default); at once, stopping what it writes and calls"
)


def add_controls(commands: Commands) -> None:
    """Add the commands on a session that a running server holds."""

    def control(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        one = commands.add(name, command, text)
        one.add_argument("--session", metavar="ID", required=True)
        one.add_argument("--json", action="store_true")
        return one

    one = commands.add(
        "address", _address, "Print an address that lets one more browser in, for ten minutes."
    )
    one.add_argument("--json", action="store_true")

    one = control("say", _say, "Send a message to the root agent of a session running on the server.")
    one.add_argument("--wait", action="store_true", help="wait for the reply and print it")
    one.add_argument("--mode", choices=WAYS, default="dialogue", help=WAY)
    one.add_argument("--plan-first", action="store_true", help=PLAN_FIRST)
    one.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")

    one = control("inject", _inject, "Send a message to any agent of a session running on the server.")
    one.add_argument("--agent", metavar="PATH", default="/")
    one.add_argument("--step", metavar="ID", help=_STEP)
    one.add_argument("--mode", choices=("queue", "deliver", "interrupt"), default="deliver", help=_MODES)
    one.add_argument(
        "--keep-calls", action="store_true", help="with --mode interrupt: let running calls finish"
    )
    one.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")

    one = control(
        "queue", _queue, "List the messages that wait for an agent; send, edit or remove one of them."
    )
    one.add_argument("--agent", metavar="PATH", default="/", help="which one (default: the root)")
    one.add_argument("message", metavar="N", type=int, nargs="?", help="the number of a message's record")
    what = one.add_mutually_exclusive_group()
    what.add_argument("--send", action="store_true", help="have it read now")
    what.add_argument("--edit", metavar="TEXT", help="say this instead; - reads standard input")
    what.add_argument("--remove", action="store_true", help="take it back")

    for name, text in _LATCHES.items():
        one = control(name, _control, text)
        one.add_argument("--agent", metavar="PATH", default="/", help="which one (default: the root)")
        one.add_argument("--step", metavar="ID", help=_STEP)
        if name == "pause":
            one.add_argument("--now", action="store_true", help="also stop the calls that are running")
        one.set_defaults(control=name)

    one = control("clear", _clear, "Approve or deny a call that waits for approval.")
    one.add_argument("call", metavar="CALL", type=int, help="the number of its record")
    verdict = one.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--allow", action="store_true")
    verdict.add_argument("--deny", action="store_true")
    one.add_argument("--why", metavar="TEXT", help="with --deny: what the agent that asked is told")
    one.add_argument(
        "--remember", action="store_true", help="with --allow: exactly this call is not asked about again"
    )

    one = control("declassify", _declassify, "Trust a variable, or everything that an agent has read so far.")
    one.add_argument("--agent", metavar="PATH", default="/", help="which one (default: the root)")
    one.add_argument("variable", metavar="VARIABLE", nargs="?", help="one of the agent's variables")

    one = control("lockdown", _lockdown, "Switch tools off: deny every call of a session from now on.")
    one.add_argument("--off", action="store_true", help="switch tools on again")


def _address(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    return remote.new_address(settings, as_json=chosen.json)


def _say(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    frame: remote.Frame = {
        "type": "say",
        "text": message(chosen.text),
        "mode": chosen.mode,
        "plan_first": chosen.plan_first,
    }
    return remote.say(settings, chosen.session, frame, wait=chosen.wait, as_json=chosen.json)


def _inject(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    frame: remote.Frame = {
        "type": "inject",
        "path": chosen.agent,
        "text": message(chosen.text),
        "mode": chosen.mode,
        "step": chosen.step,
        "calls": not chosen.keep_calls,
    }
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _queue(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    if chosen.message is None:
        return remote.queued(settings, chosen.session, chosen.agent, as_json=chosen.json)
    frame: dict[str, JSON] = {"path": chosen.agent, "n": chosen.message}
    if chosen.edit is not None:
        frame |= {"type": "queue.edit", "text": message(chosen.edit)}
    elif chosen.send or chosen.remove:
        frame["type"] = "queue.send" if chosen.send else "queue.remove"
    else:
        raise UsageError("Say what to do with the message: --send, --edit TEXT or --remove.")
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _control(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    frame: remote.Frame = {"type": chosen.control, "path": chosen.agent, "step": chosen.step}
    if chosen.control == "pause" and chosen.now:
        then: remote.Frame = {"type": "calls.stop", "path": chosen.agent}
        return remote.control(settings, chosen.session, frame, then, as_json=chosen.json)
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _clear(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    if chosen.why and chosen.allow:
        raise UsageError("--why tells an agent why it may not; it goes with --deny.")
    remember = "call" if chosen.remember else None
    frame: remote.Frame = {
        "type": "clear",
        "call": chosen.call,
        "allow": chosen.allow,
        "remember": remember,
        **({"why": chosen.why} if chosen.why else {}),
    }
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _declassify(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    name = chosen.variable.removeprefix("$") if chosen.variable else None
    frame: remote.Frame = {"type": "declassify", "path": chosen.agent, "name": name}
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)


def _lockdown(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import remote

    frame: remote.Frame = {"type": "lockdown", "value": not chosen.off}
    return remote.control(settings, chosen.session, frame, as_json=chosen.json)
