"""`iact run`, `iact serve`, and commands about stored sessions: `iact session …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iact.cli import cluster, options
from iact.cli.options import CommandGroup, Count, command, message
from iact.core.errors import UsageError
from iact.core.records.ways import Way

if TYPE_CHECKING:
    from iact.commands.run import Detail
    from iact.settings import Settings


@command()
@click.option(
    "--host", default="127.0.0.1", metavar="HOST", help="listen on this address (default: 127.0.0.1)"
)
@click.option("--port", type=int, default=0, metavar="PORT", help="listen on this port (default: a free one)")
@click.option("--workspace", metavar="DIR", help="work in this directory instead of one per session")
@options.scope
@click.option("--open", "open_browser", is_flag=True, help="open the page in a browser")
@click.option(
    "--faces",
    type=click.IntRange(0, 65535),
    help="also serve other programs on this port (OpenAI Responses and chat completions, A2A, AG-UI, MCP); 0 picks a free one (or IACT_FACES)",
)
@cluster.store
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help=f"be the gateway to the sessions of several hosts; {cluster.CLUSTER}",
)
def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workspace: str | None,
    scope: str,
    open_browser: bool,
    faces: int | None,
    store: str | None,
    address: str | None,
) -> int:
    """Start the server with the browser page."""
    settings = cluster.with_options(settings, store, address)
    faces = settings.faces if faces is None else faces
    if settings.cluster is not None:
        from iact.commands import cluster as commands

        if faces is not None:
            raise UsageError(
                "A gateway to several hosts can't serve other programs. Leave out --faces and IACT_FACES."
            )

        return commands.gateway(settings, host=host, port=port)
    from iact.commands import serve

    return serve.serve(
        settings,
        host=host,
        port=port,
        workspace=workspace,
        scope=scope,
        open_browser=open_browser,
        faces=faces,
    )


@command()
@click.argument("task")
@click.option("--session", metavar="ID", help="continue this session")
@click.option("--workspace", metavar="DIR", help="work in this directory instead of the session's own")
@options.intent(None)
@options.scope
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="first hand over this file; may be given several times",
)
@click.option(
    "--add-tokens", type=Count(), default=0, metavar="N", help="first raise the session's budget by N tokens"
)
@click.option(
    "--add-money",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SUM",
    help="first raise the cost limit of the session by SUM",
)
@options.mode
@options.plan_first
@click.option(
    "--no-questions",
    is_flag=True,
    help="ask nothing, as without a terminal: the policy decides at once about what would be asked",
)
@click.option("-q", "--quiet", is_flag=True, help="print the answer only, and what went wrong")
@click.option("-v", "--verbose", is_flag=True, help="also print what tools print, and what the model thinks")
@options.as_json
def run(
    settings: Settings,
    *,
    task: str,
    session: str | None,
    workspace: str | None,
    intent: str | None,
    scope: str,
    files: tuple[Path, ...],
    add_tokens: int,
    add_money: float,
    mode: Way,
    plan_first: bool,
    no_questions: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Send one message to the root agent of a new or existing session, and print its reply.

    TASK is the message; - reads it from standard input.
    """
    from iact.commands import run

    return run.run(
        settings, message(task, "task"),
        session=session, workspace=workspace, intent=intent, scope=scope, as_json=as_json,
        mode=mode, plan_first=plan_first, add_tokens=add_tokens, add_money=add_money, no_questions=no_questions,
        files=files, detail=_detail(quiet, verbose),
    )  # fmt: skip


def _detail(quiet: bool, verbose: bool) -> Detail:
    if quiet and verbose:
        raise UsageError("Use --quiet or --verbose, not both.")
    if quiet:
        return "quiet"
    return "verbose" if verbose else "usual"


@command("mcp")
@click.option("--workspace", metavar="DIR", help="work in this directory instead of one per session")
@options.intent("1")
@options.scope
@click.option(
    "--http",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=8700,
    metavar="[PORT]",
    help="serve streamable HTTP on this port of this machine (default: 8700) until a signal stops it",
)
def mcp(settings: Settings, *, workspace: str | None, intent: str, scope: str, http: int | None) -> int:
    """Serve sessions to Model Context Protocol (MCP) clients, on standard input and output or over HTTP.

    A client starts this command, or connects to the address that --http prints. --intent, --scope and --workspace
    apply to the sessions that clients start.
    """
    from iact.commands import mcp as commands

    return commands.mcp(settings, workspace=workspace, intent=intent, scope=scope, http=http)


@click.group(cls=CommandGroup)
def session() -> None:
    """List, find and manage stored sessions."""


@session.command("list")
@click.option("--deleted", is_flag=True, help="list the sessions in the trash instead")
@options.as_json
def list_sessions(settings: Settings, *, deleted: bool, as_json: bool) -> int:
    """List the stored sessions, newest first."""
    from iact.commands import sessions

    list_them = sessions.list_deleted if deleted else sessions.list_sessions
    return list_them(settings, as_json=as_json)


@session.command()
@click.argument("words")
@click.option("--limit", type=Count(), default=20, metavar="N", help="print at most N results (default: 20)")
@options.as_json
def search(settings: Settings, *, words: str, limit: int, as_json: bool) -> int:
    """Find sessions by their titles and by everything that was said or printed in them.

    WORDS match the beginnings of words. Text in double quotes is matched exactly.
    """
    from iact.commands import sessions

    return sessions.search(settings, words, limit=limit, as_json=as_json)


@session.command()
@click.argument("identity", metavar="ID")
@click.argument("name")
def rename(settings: Settings, *, identity: str, name: str) -> int:
    """Give a session a name. An empty name removes it."""
    from iact.commands import sessions

    return sessions.rename(settings, identity, name)


@session.command()
@click.argument("identity", metavar="ID")
@click.option("--off", is_flag=True, help="unpin it")
def pin(settings: Settings, *, identity: str, off: bool) -> int:
    """Pin a session: it stays at the top of the list and is not deleted because of its age."""
    from iact.commands import sessions

    return sessions.pin(settings, identity, pinned=not off)


@session.command()
@click.argument("identities", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--now",
    is_flag=True,
    help="delete permanently, without using the trash; also works for sessions in the trash",
)
@options.as_json
def delete(settings: Settings, *, identities: tuple[str, ...], now: bool, as_json: bool) -> int:
    """Delete sessions.

    They stay in the trash until it is emptied (setting sessions.trash_days), and can be restored until then. After
    that, their files, their memories and their containers are gone.
    """
    from iact.commands import deletion

    return deletion.delete(settings, identities, now=now, as_json=as_json)


@session.command()
@click.argument("identities", metavar="ID...", nargs=-1, required=True)
@options.as_json
def restore(settings: Settings, *, identities: tuple[str, ...], as_json: bool) -> int:
    """Restore deleted sessions from the trash."""
    from iact.commands import deletion

    return deletion.restore(settings, identities, as_json=as_json)


@session.command()
@click.argument("identity", metavar="ID")
@click.option("-o", "out", metavar="FILE", help="write to this file (default: ID.tar.gz)")
def export(settings: Settings, *, identity: str, out: str | None) -> int:
    """Write a session and all its files to one archive."""
    from iact.commands import sessions

    return sessions.export(settings, identity, out)


@session.command("import")
@click.argument("source", metavar="FILE")
@options.as_json
def import_session(settings: Settings, *, source: str, as_json: bool) -> int:
    """Import a session from an archive or a session's directory.

    A session that this installation made can be continued. Any other is read-only until you adopt it.
    """
    from iact.commands import sessions

    return sessions.take_in(settings, source, as_json=as_json)


@session.command()
def tidy(settings: Settings) -> int:
    """Delete sessions that the settings no longer keep, and permanently remove old ones from the trash.

    A server does this every hour.
    """
    from iact.commands import deletion

    return deletion.tidy(settings)


@session.command()
@click.argument("source", metavar="SESSION")
@click.option("--at", type=int, metavar="N", help="the last record to copy (default: all)")
@options.intent("1")
@options.scope
@options.as_json
def adopt(settings: Settings, *, source: str, at: int | None, intent: str, scope: str, as_json: bool) -> int:
    """Make a session of your own from one that another installation made.

    It gets copies of the records and files, under your own intent, scope and policy. Work that was in progress is
    not carried out. SESSION is a directory, a journal, or an id.
    """
    from iact.commands import sessions

    return sessions.adopt(settings, source, at=at, intent=intent, scope=scope, as_json=as_json)
