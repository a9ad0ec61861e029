"""What the parts of the command line share: how a command is added, and the words of common options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from iact.core.errors import UsageError

if TYPE_CHECKING:
    from iact.settings import Settings

Command: TypeAlias = "Callable[[argparse.Namespace, Settings], int]"
"""What carries a command out; gives the exit status."""

Group: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

SCOPE: Final = "what new sessions may use: a scope of the policy file, or several with + between"
INTENTS: Final = (
    "0 observe, 1 operate (default), 2 override; a number between, or a level's name in the policy"
)

WAY: Final = "how the message is worked on: in a dialogue, or as the goal of a plan; auto chooses"
PLAN_FIRST: Final = "the plan is written, and waits for a person before it begins"


class Commands:
    """The commands of `parser`, in the order in which they are added."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._common = argparse.ArgumentParser(add_help=False)
        self._common.add_argument("--data", metavar="DIR", help="where sessions are stored (or IACT_DATA)")
        self._common.add_argument("--debug", action="store_true", help="show tracebacks")
        self._top = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        self, name: str, command: Command, text: str, within: Group | None = None
    ) -> argparse.ArgumentParser:
        """Add a command, at the top or `within` a group; what is given back takes its options."""
        made = (within or self._top).add_parser(name, help=text, description=text, parents=[self._common])
        made.set_defaults(command=command)
        return made

    def group(self, name: str, text: str) -> Group:
        """Add a group, such as `iact journal …`."""
        return self._top.add_parser(name, help=text, description=text).add_subparsers(
            required=True, metavar="WHAT"
        )


def count(text: str) -> int:
    """A number that is not negative, for an option.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def message(given: str, what: str = "message") -> str:
    """A text from the command line or, for -, from standard input.

    Raises:
        UsageError: it is empty.
    """
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise UsageError(f"The {what} is empty.")
    return text
