"""Commands that read a journal: `replay`, `context`, and `journal …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iact.cli import options
from iact.cli.options import CommandGroup, Count, command, message

if TYPE_CHECKING:
    from iact.settings import Settings


@command()
@options.journal
@click.option("--verify", is_flag=True, help="compute the session again and compare every context")
@options.at
@click.option("--tree", is_flag=True, help="print the call tree")
@options.as_json
def replay(
    settings: Settings, *, journal: str, verify: bool, at: int | None, tree: bool, as_json: bool
) -> int:
    """Rebuild a session from its journal. Can verify it, or show its state after any record."""
    from iact.commands import journals

    path = journals.find(settings, journal)
    return journals.replay(settings, path, at=at, verify=verify, tree=tree, as_json=as_json)


@command()
@options.journal
@options.agent
@options.at
@options.as_json
def context(settings: Settings, *, journal: str, agent: str, at: int | None, as_json: bool) -> int:
    """Print the exact context that a model was sent."""
    from iact.commands import journals

    return journals.context(journals.find(settings, journal), agent, at=at, as_json=as_json)


@click.group(cls=CommandGroup)
def journal() -> None:
    """Check, print, fork and export journals."""


@journal.command()
@options.journal
@options.as_json
def check(settings: Settings, *, journal: str, as_json: bool) -> int:
    """Check a journal's format, its chain of digests, and the blobs it refers to."""
    from iact.commands import journals

    return journals.check(journals.find(settings, journal), as_json=as_json)


@journal.command()
@options.journal
@click.option("-f", "--follow", is_flag=True, help="keep printing new records as they are written")
@click.option("-n", "last", type=Count(), metavar="COUNT", help="start with the last COUNT records")
def tail(settings: Settings, *, journal: str, follow: bool, last: int | None) -> int:
    """Print one line for each record."""
    from iact.commands import journals

    return journals.tail(journals.find(settings, journal), follow=follow, last=last)


@journal.command()
@options.journal
@click.option("--at", type=int, metavar="N", help="the last record to copy (default: all)")
@click.option(
    "--say",
    metavar="TEXT",
    help="send this message to the new session and print the reply; - reads standard input",
)
@click.option(
    "--run",
    is_flag=True,
    help="first finish the work that was in progress at record N; without --run, it is dropped",
)
@options.as_json
def fork(
    settings: Settings, *, journal: str, at: int | None, say: str | None, run: bool, as_json: bool
) -> int:
    """Make a new session from the first records of a journal."""
    from iact.commands import journals

    path = journals.find(settings, journal)
    text = message(say) if say is not None else None
    return journals.fork(settings, path, at=at, text=text, as_json=as_json, run=run)


@journal.command()
@options.journal
@click.option("--at", type=int, metavar="N", help="up to record N")
@options.as_json
def timeline(settings: Settings, *, journal: str, at: int | None, as_json: bool) -> int:
    """Print what each agent did and when, and what the answers waited for."""
    from iact.commands import journals

    return journals.timeline(journals.find(settings, journal), at=at, as_json=as_json)


@journal.command()
@options.journal
@click.option(
    "--otlp", is_flag=True, help="send the spans to OTEL_EXPORTER_OTLP_ENDPOINT instead of printing them"
)
@click.option("--content", is_flag=True, help="include what people, models and tools said")
def spans(settings: Settings, *, journal: str, otlp: bool, content: bool) -> int:
    """Print a session as an OpenTelemetry trace in JSON, or send it to a collector."""
    from iact.commands import journals
    from iact.commands import spans as command

    path = journals.find(settings, journal)
    return command.send(path, content=content) if otlp else command.show(path, content=content)


@journal.command()
@click.argument("session")
@click.option("-o", "out", metavar="FILE", help="write to this file instead of standard output")
def export(settings: Settings, *, session: str, out: str | None) -> int:
    """Write a session's journal to one Markdown file. The session may be in a shared store."""
    from iact.commands import journals

    return journals.export(settings, session, out=out)


@journal.command()
@options.journal
@options.at
@click.option("-o", "out", metavar="FILE", help="write to this file instead of standard output")
def html(settings: Settings, *, journal: str, at: int | None, out: str | None) -> int:
    """Write a journal as one self-contained HTML page."""
    from iact.commands import journals

    return journals.html(journals.find(settings, journal), at=at, out=out)


@journal.command()
@options.journal
@options.at
@click.option(
    "-o", "out", metavar="FILE", help="write to this file (.eval or .json) instead of standard output"
)
def inspect(settings: Settings, *, journal: str, at: int | None, out: str | None) -> int:
    """Write a journal as a log that `inspect view` opens."""
    from iact.commands import inspect_log

    return inspect_log.write(settings, journal, at=at, out=out)
