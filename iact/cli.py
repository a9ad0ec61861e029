"""The command line: one parser, one function per command, errors as one line on stderr.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from core.errors import IactError, UsageError, lone
from iact.cli_files import add_files
from iact.cli_plans import add_plans
from iact.settings import Settings, load

Command = Callable[[argparse.Namespace, Settings], int]

_LATCHES: Final = {
    "pause": "Stop an agent and all below it, until it is resumed.",
    "resume": "Let a paused agent go on.",
    "cancel": "End the work of an agent and all below it.",
}
_MODES: Final = "at its next turn; before its next tool call (default); at once, stopping what it writes"
_SCOPE: Final = "what new sessions may use: a scope of the policy file, or several with + between"
_INTENTS: Final = "0 observe, 1 operate (default), 2 override"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    parser = build_parser()
    chosen = parser.parse_args(arguments)
    # A shell that starts us in the background has us ignore SIGINT; whoever sends one all the same means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        settings = load(data=chosen.data)
        logging.basicConfig(
            level=settings.log.upper(), format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        command: Command = chosen.command
        try:
            return command(chosen, settings)
        except BaseExceptionGroup as group:
            raise lone(group) from group
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except IactError as error:
        if chosen.debug:
            raise
        print(f"iact: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        if chosen.debug:
            raise
        print(
            f"iact: an internal error ({type(error).__name__}: {error}); --debug shows where.",
            file=sys.stderr,
        )
        return 1


def build_parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data", metavar="DIR", help="where sessions are stored (or IACT_DATA)")
    common.add_argument("--debug", action="store_true", help="show tracebacks")
    parser = argparse.ArgumentParser(prog="iact", description="A recursive agent-call-tree runtime.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str,
        command: Command,
        text: str,
        within: argparse._SubParsersAction[argparse.ArgumentParser] = commands,
    ) -> argparse.ArgumentParser:
        made = within.add_parser(name, help=text, description=text, parents=[common])
        made.set_defaults(command=command)
        return made

    def group(name: str, text: str) -> argparse._SubParsersAction[argparse.ArgumentParser]:
        return commands.add_parser(name, help=text, description=text).add_subparsers(
            required=True, metavar="WHAT"
        )

    one = add("serve", _serve, "Start the server with the browser page.")
    one.add_argument("--host", default="127.0.0.1")
    one.add_argument("--port", type=int, default=0)
    one.add_argument("--workspace", metavar="DIR", help="work in this directory instead of one per session")
    one.add_argument("--scope", metavar="NAME", default="default", help=_SCOPE)
    one.add_argument("--open", action="store_true", help="open the page in a browser")

    one = add("run", _run, "Give one message to the root of a new or existing session, and print its reply.")
    one.add_argument("task", metavar="TASK", help="the message; - reads it from standard input")
    one.add_argument("--session", metavar="ID", help="go on with this session")
    one.add_argument(
        "--workspace", metavar="DIR", help="work in this directory instead of one of the session's own"
    )
    one.add_argument("--intent", type=int, choices=(0, 1, 2), default=None, help=_INTENTS)
    one.add_argument("--scope", metavar="NAME", default="default", help=_SCOPE)
    one.add_argument("--json", action="store_true")

    one = add(
        "replay", _replay, "Rebuild a session from its journal; verify it, or look at it at any record."
    )
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--verify", action="store_true", help="run the core over it and compare every context")
    one.add_argument("--at", type=int, metavar="N", help="as it was behind record N")
    one.add_argument("--tree", action="store_true", help="print the call tree")
    one.add_argument("--json", action="store_true")

    one = add("context", _context, "Print exactly what a model saw.")
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--agent", metavar="PATH", default="/")
    one.add_argument("--at", type=int, metavar="N")
    one.add_argument("--json", action="store_true")

    journal = group("journal", "Journals on disk.")
    one = add(
        "check", _check, "Check a journal's form, its chain of digests and the blobs it names.", journal
    )
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--json", action="store_true")
    one = add("tail", _tail, "Print a line for each record.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("-f", "--follow", action="store_true", help="go on with new records as they come")
    one.add_argument(
        "-n", dest="last", type=_count, metavar="COUNT", help="begin with the last COUNT records"
    )
    one = add("fork", _fork, "Make a new session from the first records of a journal.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--at", type=int, metavar="N", help="the last record that both share (default: all)")
    one.add_argument(
        "--say", metavar="TEXT", help="say this in it, and print the reply; - reads standard input"
    )
    one.add_argument("--json", action="store_true")
    one = add("html", _html, "Write a journal as one self-contained page.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--at", type=int, metavar="N", help="as it was behind record N")
    one.add_argument("-o", dest="out", metavar="FILE", help="write it there instead of to standard output")

    _add_controls(add)

    add_files(add, group)

    add_plans(add, group)

    image = group("image", "The sandbox's images.")
    one = add("build", _image, "Build the base image, if it is not there.", image)
    one.add_argument("--from", dest="source", choices=("registry", "debian"))

    gate = group("gate", "What the gate decided, and what it would decide.")
    one = add("explain", _gate_explain, "Say why the gate decided as it did, at record N.", gate)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("n", type=int, metavar="N")
    one.add_argument("--json", action="store_true")
    one = add("test", _gate_test, "Say what the gate would decide about a call, without making it.", gate)
    one.add_argument("function", metavar="FUNCTION")
    one.add_argument("given", nargs="*", metavar="key=value")
    one.add_argument("--body", metavar="TEXT")
    one.add_argument("--workspace", choices=("scratch", "live"), default="scratch")
    one.add_argument("--scope", metavar="NAME", default="default")
    one.add_argument("--intent", type=int, choices=(0, 1, 2), default=1, help=_INTENTS)
    one.add_argument("--json", action="store_true")

    memory = group("memory", "What agents remember.")
    one = add("search", _memory_search, "Search memory, best first.", memory)
    one.add_argument("query", metavar="QUERY")
    one.add_argument("--limit", type=int, default=20, metavar="N")
    one.add_argument("--json", action="store_true")
    one = add("show", _memory_show, "Show one fragment with its history.", memory)
    one.add_argument("id", metavar="ID")
    one = add("forget", _memory_forget, "Forget fragments, for good.", memory)
    one.add_argument("ids", nargs="+", metavar="ID")
    one = add("edit", _memory_edit, "Let a fragment read otherwise, for good.", memory)
    one.add_argument("id", metavar="ID")
    one.add_argument("text", metavar="TEXT")
    add("rebuild", _memory_rebuild, "Build the store anew from the journals.", memory)

    one = add("doctor", _doctor, "Say what works here, and what to do about what doesn't.")
    one.add_argument("--json", action="store_true")
    return parser


class _Add(Protocol):
    def __call__(self, name: str, command: Command, text: str) -> argparse.ArgumentParser: ...


def _add_controls(add: _Add) -> None:
    """The commands on a session that a running server holds."""

    def control(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        one = add(name, command, text)
        one.add_argument("--session", metavar="ID", required=True)
        one.add_argument("--json", action="store_true")
        return one

    one = control("say", _say, "Say something to the root of a session that the server holds.")
    one.add_argument("--wait", action="store_true", help="wait for the reply and print it")
    one.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")

    one = control("inject", _inject, "Put a message by the user into the dialogue of any agent.")
    one.add_argument("--agent", metavar="PATH", default="/")
    one.add_argument("--mode", choices=("queue", "deliver", "interrupt"), default="deliver", help=_MODES)
    one.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")

    for name, text in _LATCHES.items():
        one = control(name, _control, text)
        one.add_argument("--agent", metavar="PATH", default="/", help="which one (default: the root)")
        one.set_defaults(control=name)

    one = control("clear", _clear, "Approve or deny a call that waits for clearance.")
    one.add_argument("call", metavar="CALL", type=int, help="the number of its record")
    verdict = one.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--allow", action="store_true")
    verdict.add_argument("--deny", action="store_true")
    one.add_argument(
        "--remember", action="store_true", help="with --allow: exactly this call needs no clearance any more"
    )

    one = control(
        "declassify", _declassify, "Vouch for a variable, or for all that an agent has read so far."
    )
    one.add_argument("--agent", metavar="PATH", default="/", help="which one (default: the root)")
    one.add_argument("variable", metavar="VARIABLE", nargs="?", help="one of the agent's variables")

    one = control("lockdown", _lockdown, "Deny every call of a session from now on.")
    one.add_argument("--off", action="store_true", help="let calls through again")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def _text(given: str, what: str = "message") -> str:
    """A message from the command line or, for -, from standard input."""
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise UsageError(f"The {what} is empty.")
    return text


def _serve(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import serve

    return serve.serve(
        settings, host=chosen.host, port=chosen.port, workspace=chosen.workspace, scope=chosen.scope,
        open_browser=chosen.open,
    )  # fmt: skip


def _run(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import run

    return run.run(
        settings,
        _text(chosen.task, "task"),
        session=chosen.session,
        workspace=chosen.workspace,
        intent=chosen.intent,
        scope=chosen.scope,
        as_json=chosen.json,
    )


def _replay(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    path = journals.find(settings, chosen.journal)
    return journals.replay(path, at=chosen.at, verify=chosen.verify, tree=chosen.tree, as_json=chosen.json)


def _context(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    path = journals.find(settings, chosen.journal)
    return journals.context(path, chosen.agent, at=chosen.at, as_json=chosen.json)


def _check(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    return journals.check(journals.find(settings, chosen.journal), as_json=chosen.json)


def _tail(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    return journals.tail(journals.find(settings, chosen.journal), follow=chosen.follow, last=chosen.last)


def _fork(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    path = journals.find(settings, chosen.journal)
    text = _text(chosen.say) if chosen.say is not None else None
    return journals.fork(settings, path, at=chosen.at, text=text, as_json=chosen.json)


def _html(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import journals

    return journals.html(journals.find(settings, chosen.journal), at=chosen.at, out=chosen.out)


def _say(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    return remote.say(settings, chosen.session, _text(chosen.text), wait=chosen.wait, as_json=chosen.json)


def _inject(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    message: remote.Frame = {
        "type": "inject",
        "path": chosen.agent,
        "text": _text(chosen.text),
        "mode": chosen.mode,
    }
    return remote.control(settings, chosen.session, message, as_json=chosen.json)


def _control(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    message: remote.Frame = {"type": chosen.control, "path": chosen.agent}
    return remote.control(settings, chosen.session, message, as_json=chosen.json)


def _clear(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    remember = "call" if chosen.remember else None
    message: remote.Frame = {
        "type": "clear",
        "call": chosen.call,
        "allow": chosen.allow,
        "remember": remember,
    }
    return remote.control(settings, chosen.session, message, as_json=chosen.json)


def _declassify(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    name = chosen.variable.removeprefix("$") if chosen.variable else None
    message: remote.Frame = {"type": "declassify", "path": chosen.agent, "name": name}
    return remote.control(settings, chosen.session, message, as_json=chosen.json)


def _lockdown(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import remote

    message: remote.Frame = {"type": "lockdown", "value": not chosen.off}
    return remote.control(settings, chosen.session, message, as_json=chosen.json)


def _image(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import catalogue

    return catalogue.build_image(chosen.source)


def _doctor(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import catalogue

    return catalogue.doctor(settings, as_json=chosen.json)


def _gate_explain(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import gate, journals

    return gate.explain(journals.find(settings, chosen.journal), chosen.n, as_json=chosen.json)


def _gate_test(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import gate

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


def _memory_search(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import memory_commands

    return memory_commands.search(settings, chosen.query, limit=chosen.limit, as_json=chosen.json)


def _memory_show(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import memory_commands

    return memory_commands.show(settings, chosen.id)


def _memory_forget(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import memory_commands

    return memory_commands.forget(settings, chosen.ids)


def _memory_edit(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import memory_commands

    return memory_commands.edit(settings, chosen.id, chosen.text)


def _memory_rebuild(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact import memory_commands

    return memory_commands.rebuild(settings)
