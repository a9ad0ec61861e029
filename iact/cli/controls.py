"""Commands for a session that is running on a server, or in an `iact run`: `say`, `pause`, `clear`, …"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import command, message, one_of
from iact.core.errors import UsageError
from iact.core.records.ways import Way

if TYPE_CHECKING:
    from iact.commands.remote import Frame
    from iact.core.ports import JSON
    from iact.settings import Settings

_step: Final = click.option("--step", metavar="ID", help="a step of the plan that --agent names")


@command()
@options.as_json
def address(settings: Settings, *, as_json: bool) -> int:
    """Print an address that lets one more browser sign in. It works for ten minutes."""
    from iact.commands import remote

    return remote.new_address(settings, as_json=as_json)


@command()
@options.session
@click.option("--wait", is_flag=True, help="wait for the reply and print it")
@options.mode
@options.plan_first
@click.argument("text")
@options.as_json
def say(
    settings: Settings, *, session: str, wait: bool, mode: Way, plan_first: bool, text: str, as_json: bool
) -> int:
    """Send a message to the root agent of a running session.

    TEXT is the message; - reads it from standard input.
    """
    from iact.commands import remote

    frame: Frame = {"type": "say", "text": message(text), "mode": mode, "plan_first": plan_first}
    return remote.say(settings, session, frame, wait=wait, as_json=as_json)


@command()
@options.session
@options.agent
@_step
@click.option(
    "--mode",
    type=click.Choice(("queue", "deliver", "interrupt")),
    default="deliver",
    help="when the agent reads it: at its next turn (queue), before its next tool call (deliver, the default), or at once, stopping what it writes and calls (interrupt)",
)
@click.option("--keep-calls", is_flag=True, help="with --mode interrupt: let running calls finish")
@click.argument("text")
@options.as_json
def inject(
    settings: Settings,
    *,
    session: str,
    agent: str,
    step: str | None,
    mode: str,
    keep_calls: bool,
    text: str,
    as_json: bool,
) -> int:
    """Send a message to any agent of a running session.

    TEXT is the message; - reads it from standard input.
    """
    from iact.commands import remote

    frame: Frame = {
        "type": "inject",
        "path": agent,
        "text": message(text),
        "mode": mode,
        "step": step,
        "calls": not keep_calls,
    }
    return remote.control(settings, session, frame, as_json=as_json)


@command()
@options.session
@options.agent
@click.argument("number", metavar="[N]", type=int, required=False)
@click.option("--send", is_flag=True, help="have the agent read it now")
@click.option("--edit", metavar="TEXT", help="replace its text; - reads standard input")
@click.option("--remove", is_flag=True, help="remove it from the queue")
@options.as_json
def queue(
    settings: Settings,
    *,
    session: str,
    agent: str,
    number: int | None,
    send: bool,
    edit: str | None,
    remove: bool,
    as_json: bool,
) -> int:
    """List the messages waiting for an agent, or send, edit or remove the one at record N."""
    from iact.commands import remote

    one_of(send=send, edit=edit, remove=remove)
    if number is None:
        return remote.queued(settings, session, agent, as_json=as_json)
    frame: dict[str, JSON] = {"path": agent, "n": number}
    if edit is not None:
        frame |= {"type": "queue.edit", "text": message(edit)}
    elif send or remove:
        frame["type"] = "queue.send" if send else "queue.remove"
    else:
        raise UsageError("Choose what to do with the message: --send, --edit TEXT or --remove.")
    return remote.control(settings, session, frame, as_json=as_json)


@command()
@options.session
@options.agent
@_step
@click.option("--now", is_flag=True, help="also stop the calls that are running")
@options.as_json
def pause(settings: Settings, *, session: str, agent: str, step: str | None, now: bool, as_json: bool) -> int:
    """Pause an agent and all agents below it, or one step of a plan."""
    from iact.commands import remote

    then: tuple[Frame, ...] = ({"type": "calls.stop", "path": agent},) if now else ()
    frame: Frame = {"type": "pause", "path": agent, "step": step}
    return remote.control(settings, session, frame, *then, as_json=as_json)


@command()
@options.session
@options.agent
@_step
@options.as_json
def resume(settings: Settings, *, session: str, agent: str, step: str | None, as_json: bool) -> int:
    """Resume a paused agent or step."""
    from iact.commands import remote

    frame: Frame = {"type": "resume", "path": agent, "step": step}
    return remote.control(settings, session, frame, as_json=as_json)


@command()
@options.session
@options.agent
@_step
@options.as_json
def cancel(settings: Settings, *, session: str, agent: str, step: str | None, as_json: bool) -> int:
    """Permanently stop an agent and all agents below it, or one step of a plan."""
    from iact.commands import remote

    frame: Frame = {"type": "cancel", "path": agent, "step": step}
    return remote.control(settings, session, frame, as_json=as_json)


@command()
@options.session
@click.argument("calls", type=int, nargs=-1, required=True, metavar="CALL...")
@click.option("--allow", is_flag=True, help="let the calls be made")
@click.option("--deny", is_flag=True, help="refuse the calls")
@click.option("--why", metavar="TEXT", help="with --deny: the reason, which the calling agent is told")
@click.option("--remember", is_flag=True, help="with --allow: don't ask again about exactly this call")
@options.digest
@options.as_json
def clear(
    settings: Settings,
    *,
    session: str,
    calls: tuple[int, ...],
    allow: bool,
    deny: bool,
    why: str | None,
    remember: bool,
    digest: str,
    as_json: bool,
) -> int:
    """Approve or deny a call that waits for approval, or several at once.

    CALL is the record number of the call. Several calls can be answered together if they call the same function and
    wait for the same reason. Before calls are approved without --digest, they are shown, and you are asked.
    """
    from iact.commands import answers, remote

    one_of(allow=allow, deny=deny)
    if not (allow or deny):
        raise UsageError("Choose whether the call may run: --allow or --deny.")
    if why and allow:
        raise UsageError("--why tells the agent why its call was denied. Use it with --deny.")
    frame: Frame = {
        "type": "clear",
        "call": calls[0],
        "also": list(calls[1:]),
        "allow": allow,
        "remember": "call" if remember else None,
        **({"why": why} if why else {}),
    }
    if allow:
        return answers.clear(settings, session, calls, frame, seen=digest, as_json=as_json)
    return remote.control(settings, session, frame, as_json=as_json)


@command()
@options.session
@click.argument("ask", type=int, metavar="RECORD")
@click.option("--values", metavar="JSON", help='the answer, by field: {"town": "Oslo"}')
@click.option(
    "--yes", is_flag=True, help="accept every field as it is, or agree to a question without fields"
)
@click.option("--no", is_flag=True, help="decline to answer; the module is told")
@options.digest
@options.as_json
def answer(
    settings: Settings,
    *,
    session: str,
    ask: int,
    values: str | None,
    yes: bool,
    no: bool,
    digest: str,
    as_json: bool,
) -> int:
    """Answer a question from a module.

    RECORD is the record number of the question. The answer is sent to the module. Without --digest, the question is
    shown first, and you are asked whether to answer it. To approve or deny calls, use iact clear.
    """
    from iact.commands import answers, remote

    one_of(values=values, yes=yes, no=no)
    if values is None and not (yes or no):
        raise UsageError("Give an answer: --values, --yes or --no.")
    frame: Frame = {
        "type": "form.answer",
        "ask": ask,
        "accept": not no,
        "values": _values(values) if values is not None else {},
    }
    if not no:
        return answers.answer(settings, session, ask, frame, seen=digest, as_json=as_json)
    return remote.control(settings, session, frame, as_json=as_json)


def _values(given: str) -> dict[str, JSON]:
    try:
        told = json.loads(given)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise UsageError('--values takes a JSON object, such as {"town": "Oslo"}.')
    return told


@command()
@options.session
@options.agent
@click.argument("variable", required=False)
@options.digest
@options.as_json
def declassify(
    settings: Settings, *, session: str, agent: str, variable: str | None, digest: str, as_json: bool
) -> int:
    """Mark a variable of an agent, or everything that the agent has read so far, as trusted.

    It is shown first, with its digest, and you are asked.
    """
    from iact.commands import answers

    name = variable.removeprefix("$") if variable else None
    return answers.declassify(settings, session, agent, name, seen=digest, as_json=as_json)


@command()
@options.session
@click.option("--off", is_flag=True, help="turn tools on again")
@options.as_json
def lockdown(settings: Settings, *, session: str, off: bool, as_json: bool) -> int:
    """Turn tools off: deny every call of a session from now on."""
    from iact.commands import remote

    frame: Frame = {"type": "lockdown", "value": not off}
    return remote.control(settings, session, frame, as_json=as_json)
