"""Every command's options are the parameters of its function, and need nothing of what it does."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import click
import pytest

from iact.cli import main, parse, program
from iact.cli.options import Chosen
from iact.core.records.ways import ABOUT, PLAN_MODES

OF_MODES: Final = {option.name for mode in PLAN_MODES for option in ABOUT[mode].options}
"""The options of the modes of plans, which a function takes by their names in PLAN."""


def commands(group: click.Group = program, path: str = "iact") -> Iterator[tuple[str, click.Command]]:
    for name, one in group.commands.items():
        if isinstance(one, click.Group):
            yield from commands(one, f"{path} {name}")
        else:
            yield f"{path} {name}", one


@pytest.mark.parametrize(
    ("path", "one"), list(commands()), ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_function_takes_what_its_command_does(path: str, one: click.Command) -> None:
    assert one.callback is not None
    parameters = inspect.signature(one.callback).parameters.values()
    taken = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    options = {parameter.name for parameter in one.params} - {"data", "debug"}

    takes_those_of_modes = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    if takes_those_of_modes:
        assert options >= OF_MODES
        options -= OF_MODES
    assert taken == options
    assert one.help, f"{path} does not say what it does"


@pytest.mark.parametrize(
    ("path", "one"), list(commands()), ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_command_can_do_with_what_it_requires(path: str, one: click.Command) -> None:
    """No default is a value that the option itself would refuse."""
    words = []
    for parameter in one.params:
        if parameter.required:
            choices = parameter.type.choices if isinstance(parameter.type, click.Choice) else ("1",)
            option = [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            words += [*option, choices[0]]
    chosen = parse([*path.split()[1:], *words])
    assert chosen == 0 or isinstance(chosen, Chosen)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("module", "lst"), "'list'"),
        (("run",), "'TASK'"),
        (("run", "--mod", "auto", "x"), "'--mode'"),
        (("run", "--mode", "dance", "x"), "'dance'"),
        (("plan", "run", "--rounds", "0", "x"), "1 to 100. See: iact plan run --help"),
        (("clear", "--session", "x", "7", "--allow", "--deny"), "--allow and --deny"),
        (("clear", "--session", "x", "7"), "--allow or --deny"),
        (("answer", "--session", "x", "7", "--yes", "--no"), "--yes and --no"),
        (("answer", "--session", "x", "7"), "--values, --yes or --no"),
        (("run", "--data"), "'--data'"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, and where to read how it is written."""
    assert main(words) == 2
    seen = capsys.readouterr()
    assert (seen.out, seen.err.count("\n")) == ("", 1)
    assert seen.err.startswith("iact: ")
    assert told in seen.err


@pytest.mark.parametrize("words", [(), ("plan",)])
def test_a_group_alone_shows_how_to_use_it(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith("Usage: iact ")


def test_help_loads_nothing_of_what_commands_do() -> None:
    """Help, the version and each completion start the program: they may load its options, and no room's work."""
    script = (
        "import sys; from iact.cli import parse; parse(['run', '--help'])\n"
        "heavy = {'pydantic', 'openai', 'chromadb', 'numpy', 'asyncio', 'iact.settings', 'iact.core.session', 'iact.core.stored', 'iact.core.views', 'iact.sandbox', 'iact.web'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)
