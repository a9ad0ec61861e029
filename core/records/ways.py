"""The ways of working on a message, and the modes of plans among them: the one list of what is said about each.

Plans, the PLAN action and its documentation, the command line, the page, and the faces all read it. What a mode does is
a class in `core.plan.modes`, which has the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

PlanMode: TypeAlias = Literal["static", "reflect", "nreflect", "orchestrator", "analyze", "profile"]
"""The events after which a plan is judged; see `core.plan.modes`."""

PlanWay: TypeAlias = Literal[PlanMode, "auto"]
"""How to run a plan; `auto` chooses a mode."""

Way: TypeAlias = Literal["dialogue", "auto", PlanMode]
"""How to work on a message: in a dialogue, or as the goal of a plan; `auto` chooses."""

PLAN_MODES: Final[tuple[PlanMode, ...]] = get_args(PlanMode)
PLAN_WAYS: Final[tuple[PlanWay, ...]] = get_args(PlanWay)
WAYS: Final[tuple[Way, ...]] = get_args(Way)

DEFAULT_MODE: Final[PlanMode] = "static"
"""The mode of a plan whose author names none."""


@dataclass(frozen=True, slots=True)
class ModeOption:
    """A whole number from 1 to 100 that a mode takes."""

    name: str
    """As PLAN and the journal have it."""
    flag: str
    """As the command line has it, without the dashes."""
    default: int
    """Its value if the author of the plan gives none."""
    help: str
    """What it is, for people."""


@dataclass(frozen=True, slots=True)
class AboutWay:
    """What is said about a way of working."""

    label: str
    """Its name for people."""
    help: str
    """What happens, for people: a sentence without its full stop."""
    pays: str = ""
    """When it pays, for the model that writes a PLAN; empty if it is not a way to run a plan."""
    options: tuple[ModeOption, ...] = ()
    """The numbers that it takes."""


ABOUT: Final[Mapping[str, AboutWay]] = {
    "dialogue": AboutWay(
        label="Chat",
        help="The root agent works step by step and sees each result before it continues",
    ),
    "auto": AboutWay(
        label="Auto",
        help="Chosen depending on what the message asks for",
        pays="you can't tell.",
    ),
    "profile": AboutWay(
        label="Prepared plan",
        help="A plan with its risks and alternatives, written beforehand in two or three model calls",
        pays="regular work of which you know where it may break; it takes two or three model calls, however many steps there are.",
    ),
    "static": AboutWay(
        label="Run the plan as written",
        help="The steps run as planned; no model judges the results on the way",
        pays="you know the steps, and results change none of them; nothing is judged.",
    ),
    "reflect": AboutWay(
        label="Check after each stage",
        help="A model judges the results after each wave of steps and decides how to continue",
        pays="each wave of results decides about the next.",
    ),
    "nreflect": AboutWay(
        label="Check after every few steps",
        help="A model judges the results after every few steps, while other steps run",
        pays="there are many steps; every n results are judged, and nothing waits for that.",
        options=(ModeOption("n", "every", 4, "judge the plan after every N steps (default: 4)"),),
    ),
    "orchestrator": AboutWay(
        label="Supervised",
        help="A model reads each result and may add or cancel steps",
        pays="a single result may ask for more steps, or make others needless.",
    ),
    "analyze": AboutWay(
        label="Repeat until done",
        help="A model judges the result at the end and plans again until the goal is reached",
        pays="the goal matters more than the way; it is planned anew until it is reached.",
        options=(
            ModeOption(
                "rounds", "rounds", 3, "the most times that the plan is judged (default: the setting, 3)"
            ),
        ),
    ),
}
"""Each way of working, in the order in which people are offered them."""

OPTIONS: Final[Mapping[str, ModeOption]] = {
    option.name: option for mode in PLAN_MODES for option in ABOUT[mode].options
}
"""The options of all modes, by name."""


def when_each_pays() -> str:
    """Return a line for each way to run a plan, that says when it pays, for models."""
    return "\n".join(f"- {_as_written(way)}: {ABOUT[way].pays}" for way in PLAN_WAYS)


def _as_written(way: PlanWay) -> str:
    """A way to run a plan as PLAN has it, with the defaults of its options."""
    if way == DEFAULT_MODE:
        return f"{way} (the default)"
    return " ".join([way, *(f"{option.name}={option.default}" for option in ABOUT[way].options)])
