"""How commands are declared, and the options that many of them share.

A command is one function, decorated with its click options; its docstring is its help. The code that does the work is
imported inside the function, so that help and completion don't load it. Parsing and running are separate: a command
line is parsed into a `Chosen`, which `iact.cli.main` runs once it knows how the output must be cleaned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from iact.core.errors import UsageError
from iact.core.records.ways import ABOUT, DEFAULT_MODE, PLAN_MODES, PLAN_WAYS, WAYS

if TYPE_CHECKING:
    from iact.settings import Settings


@dataclass(frozen=True, slots=True)
class Chosen:
    """A command with its options, ready to run."""

    function: Callable[..., int]
    options: Mapping[str, object]
    data: str | None
    debug: bool

    def run(self, settings: Settings) -> int:
        """Run the command and return its exit status."""
        return self.function(settings, **self.options)

    @property
    def as_json(self) -> bool:
        """Whether the command prints JSON."""
        return bool(self.options.get("as_json"))


class Command(click.Command):
    """A command whose function takes the settings and its own options, and returns the exit status."""

    def __init__(
        self,
        name: str | None,
        *,
        callback: Callable[..., int] | None = None,
        params: list[click.Parameter] | None = None,
        help: str | None = None,
    ) -> None:
        common = [
            click.Option(["--data"], metavar="DIR", help="where sessions are stored (or IACT_DATA)"),
            click.Option(["--debug"], is_flag=True, help="show tracebacks"),
        ]
        super().__init__(name, callback=callback, params=[*(params or ()), *common], help=help)

    def invoke(self, ctx: click.Context) -> Chosen:
        """Collect the options without running anything."""
        assert self.callback is not None
        given = dict(ctx.params)
        data, debug = given.pop("data"), given.pop("debug")
        return Chosen(self.callback, given, data, debug)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first paragraph of the help."""
        return _first(self)


class CommandGroup(click.Group):
    """A group such as `iact journal …`. Its commands are listed in the order of their definition."""

    command_class = Command

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first paragraph of the help."""
        return _first(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(self.commands)


def _first(one: click.Command) -> str:
    return " ".join((one.help or "").partition("\n\n")[0].split())


command: Final = partial(click.command, cls=Command)
"""Decorate the function of a top-level command."""

as_json: Final = click.option("--json", "as_json", is_flag=True, help="print JSON")
journal: Final = click.argument("journal")
session: Final = click.option(
    "--session", metavar="ID", required=True, help="id of the session (iact session list)"
)
agent: Final = click.option("--agent", metavar="PATH", default="/", help="which agent (default: the root)")
at: Final = click.option("--at", type=int, metavar="N", help="show the state after record N")

digest: Final = click.option(
    "--digest",
    metavar="DIGEST",
    default="",
    help="agree only to what was shown with this digest, without being asked",
)

SCOPE: Final = "what new sessions may use: a scope from the policy file, or several joined with +"
scope: Final = click.option("--scope", metavar="NAME", default="default", help=SCOPE)


def intent(default: str | None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The option `--intent`. With the default None, an existing session keeps its own intent."""
    levels = "0 read only, 1 change files (default), 2 anything; or a number in between, or a level named in the policy"
    return click.option("--intent", metavar="0|1|2", default=default, help=levels)


mode: Final = click.option(
    "--mode",
    type=click.Choice(WAYS),
    default="dialogue",
    help="how to work on the message: in a dialogue, or as the goal of a plan; auto chooses",
)
plan_first: Final = click.option(
    "--plan-first", is_flag=True, help="write the plan, then wait for a person to start it"
)
plan_mode: Final = click.option(
    "--mode",
    type=click.Choice(PLAN_WAYS),
    default=DEFAULT_MODE,
    help="when a model judges the plan (static: never)",
)


def of_modes(command: Callable[..., int]) -> Callable[..., int]:
    """The options of the modes of plans. Their values are passed by the names that PLAN has for them."""
    for mode in reversed(PLAN_MODES):
        for option in reversed(ABOUT[mode].options):
            command = click.option(
                f"--{option.flag}",
                option.name,
                type=Count(1, 100),
                metavar="N",
                help=f"{mode}: {option.help}",
            )(command)
    return command


class Count(click.ParamType[int]):
    """A whole number from `least` to `most`, in plain digits."""

    name = "count"

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self.least = least
        self.most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number."""
        text = str(value)
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < self.least or (self.most is not None and number > self.most):
            wanted = "of 0 or more" if self.most is None else f"from {self.least} to {self.most}"
            self.fail(f"{text!r} is not a number {wanted}.", param, ctx)
        return number


def one_of(**given: object) -> None:
    """Refuse options that exclude each other.

    Raises:
        UsageError: more than one of them was given.
    """
    chosen = [f"--{name}" for name, value in given.items() if value not in (None, False)]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} can't be used together. Leave out all but one.")


def message(given: str, what: str = "message") -> str:
    """Return a text from the command line, or from standard input if it is `-`.

    Raises:
        UsageError: the text is empty, too long, or no text.
    """
    text = given if given != "-" else _read_message(what)
    if not text.strip():
        raise UsageError(f"The {what} is empty.")
    return text


def _read_message(what: str) -> str:
    """A text from standard input, which may be without an end."""
    from iact.core.session.session import LARGEST_UPLOAD  # a long message becomes a file of the session

    data = sys.stdin.buffer.read(LARGEST_UPLOAD + 1)
    if len(data) > LARGEST_UPLOAD:
        raise UsageError(
            f"The {what} on standard input has more than {LARGEST_UPLOAD:,} bytes, the most that one may have. Hand over what is "
            "longer in several files."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"The {what} on standard input is not text in UTF-8.") from error
