"""What an action is: a name, a parameter schema, a few lines of documentation, an impact.

The core registers its own actions below; functions of modules are registered from their manifests. An agent's action
space is a `Registry`: an action that is not in it does not exist for that agent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from iact.core.ports import JSON
from iact.core.records.ways import OPTIONS, PLAN_WAYS, when_each_pays

FUNCTION: Final = r"[a-z][a-z0-9_]{0,79}\.[a-z][a-z0-9_]{0,79}"
"""A pattern of the name of a module's function."""

MOST_ACTIONS: Final = 512
"""The most actions of one reply that are run. What stands behind them is left, and its agent is told so."""

_DOTTED: Final = re.compile(FUNCTION)

_IN_USE: Final = ("shell", "files", "python", "web", "docs", "sql", "git", "browser", "app", "a2a")
"""The shipped modules, in the order in which agents need them."""


@dataclass(frozen=True)
class ActionSpec:
    """One action: of the core, or a function of a module."""

    name: str
    """`CALL`, or `module.function`."""
    summary: str
    """One sentence, which stands behind the name in lists."""
    parameters: Mapping[str, JSON] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """A JSON Schema of type object."""
    body: str | None = None
    """The parameter that receives the block's lines."""
    documentation: str = ""
    """What HELP tells about it."""
    impact: int = 0
    """0 reads, 1 writes, 2 destroys, sends out or changes authority (declared, for functions of modules)."""
    alias: str | None = None
    """Another name for it."""
    idempotent: bool = False
    """Whether to do it twice is the same as to do it once."""
    rest: str | None = None
    """A text parameter that takes all positional words."""
    words: int | None = None
    """How many parameters positional words may fill; None: all."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """What to write in place of a parameter that it hasn't, and that others have: the end of a sentence."""
    keywords: tuple[str, ...] = ()
    """Words in a message that its function is about."""
    core: bool = False
    """Whether it is one of the actions below."""
    timeout: float | None = None
    """Seconds after which a call is abandoned, or None for the session's default."""
    vouched: bool = True
    """Whether its description comes from a trusted author, or a person approved it."""
    held: bool = False
    """Whether its answers depend on state in its module's process, so that it must run where writing calls run."""
    returns: str = ""
    """The media type of its result, if that is not text and its manifest says so."""
    cache_key: str = ""
    """The parameter that is the key under which the session caches results of its calls. Empty: no caching."""

    @cached_property
    def properties(self) -> Mapping[str, Mapping[str, JSON]]:
        """The schema of each parameter, in the order in which positional words fill them."""
        declared = self.parameters.get("properties")
        if not isinstance(declared, dict):
            return {}

        # Whatever the author's order is: what must be given comes before what may be.
        names = sorted(declared, key=lambda name: name not in self.required)
        schemas = ((name, declared[name]) for name in names)
        return {name: schema if isinstance(schema, dict) else {} for name, schema in schemas}

    @cached_property
    def required(self) -> frozenset[str]:
        """Names of the parameters that must be given."""
        names = self.parameters.get("required")
        if not isinstance(names, list):
            return frozenset()
        return frozenset(str(name) for name in names)

    @cached_property
    def module(self) -> str | None:
        """The module that serves this function; None for core actions."""
        return None if self.core else self.name.split(".", 1)[0]


def _schema(
    required: Iterable[str],
    *,
    plain: Mapping[str, dict[str, JSON]] | None = None,
    **properties: dict[str, JSON],
) -> dict[str, JSON]:
    """Build a schema. `plain`: parameters that exist as a mapping, or whose names are not valid in Python."""
    return {
        "type": "object",
        "properties": {name: dict(value) for name, value in {**properties, **(plain or {})}.items()},
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT: Final[dict[str, JSON]] = {"type": "string"}
_COUNT: Final[dict[str, JSON]] = {"type": "integer", "minimum": 1, "maximum": 100}

_CALLED: Final[dict[str, dict[str, JSON]]] = {
    "name": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,39}$"},
    "message": _TEXT,
    "role": _TEXT,
    "model": _TEXT,
    "scope": _TEXT,
    "intent": {"type": "number", "minimum": 0},
    "fork": {"type": "boolean"},
}
_TIMEOUT: Final = "to limit how long you wait, write CALL_ASYNC, and then `WAIT name timeout=60`"
_TOOLS: Final = 'to give a child only some of your functions, write scope="files.* shell.run"'
_TURNS: Final = "a child stops when it has answered; say in the message how much it should do"
_INSTEAD: Final = {
    **dict.fromkeys(("timeout", "timeout_seconds", "seconds", "time_limit", "max_time"), _TIMEOUT),
    **dict.fromkeys(("tools", "functions", "allowed_tools", "modules"), _TOOLS),
    **dict.fromkeys(("max_turns", "max_steps", "turns", "max_iterations", "steps"), _TURNS),
}
CALL: Final = ActionSpec(
    name="CALL",
    summary="Open a dialogue with a child agent, or go on with it; its reply comes back to you.",
    parameters=_schema(["name", "message"], plain=_CALLED),
    body="message",
    words=1,
    instead=_INSTEAD,
    documentation="""The first CALL of a name creates the child; later ones go on in the same dialogue, and it remembers everything. It \
sees nothing of your history but what you write; a $name in the message hands it that variable. If it asks you something, \
answer with another CALL, or ask your own caller.

    CALL reader role="a careful reader" scope="files.* web.fetch" intent=0
    What does $contract say about notice?

- role: who it is. scope: which of your functions it has. intent=0: it may read, not change. Both only narrow what you have.
- fork=true: it begins with your whole history. model: the role of another model, if there are several.
- mode=reflect (or any other mode), or from=NAME: it opens a plan under this name, exactly as PLAN does; see `HELP PLAN`.""",
    core=True,
)
CALL_AT: Final = replace(CALL, parameters=_schema(["name", "message"], plain={**_CALLED, "at": _TEXT}))
"""CALL where a module reaches agents elsewhere: `at` is the address of one."""
CALL_ASYNC: Final = replace(
    CALL,
    name="CALL_ASYNC",
    summary="Like CALL, but you go on at once; collect the reply with WAIT or QUERY.",
    documentation="Everything is as with CALL. Your answer ends the work of children that are still busy, so WAIT for them first.",
)
_NAMES: Final = _schema([], names=_TEXT, timeout={"type": "number", "minimum": 0})
WAIT: Final = ActionSpec(
    name="WAIT",
    summary="Wait for the replies of all children at work, or of those named; `any` first: for the first reply.",
    parameters=_NAMES,
    rest="names",
    core=True,
)
QUERY: Final = ActionSpec(
    name="QUERY",
    summary="Collect the replies that are there, without waiting.",
    parameters=_schema([], names=_TEXT),
    rest="names",
    core=True,
)
VAR: Final = ActionSpec(
    name="VAR",
    summary="Keep the body as a variable.",
    parameters=_schema(
        ["name", "value"],
        name={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
        value=_TEXT,
        type=_TEXT,
    ),
    body="value",
    core=True,
)
HELP: Final = ActionSpec(
    name="HELP",
    summary="Read how a function, a module or an action is used; without a name, what there is.",
    parameters=_schema([], name=_TEXT),
    body="name",
    rest="name",
    core=True,
)
SHOW: Final = ActionSpec(
    name="SHOW",
    summary="Read variables, or some lines of one.",
    parameters=_schema(["name"], name=_TEXT, lines=_TEXT, chars=_TEXT),
    rest="name",
    core=True,
)

COMPRESS: Final = ActionSpec(
    name="COMPRESS",
    summary="Cut your history: the body is your own summary of all that must survive.",
    parameters=_schema([], summary=_TEXT),
    body="summary",
    core=True,
)

REMEMBER: Final = ActionSpec(
    name="REMEMBER",
    summary="Keep a statement in memory, beyond this task; `replaces` is the id of the one that it replaces.",
    parameters=_schema(
        ["text"],
        kind={"type": "string", "enum": ["preference", "decision", "fact", "lesson"]},
        scope={"type": "string", "enum": ["person", "project", "session"]},
        replaces=_TEXT,
        text=_TEXT,
    ),
    body="text",
    core=True,
)
REMEMBER_BEFORE_1_3: Final = replace(
    REMEMBER,
    parameters=_schema(
        ["text"],
        kind={"type": "string", "enum": ["goal", "preference", "fact", "lesson", "result"]},
        supersedes=_TEXT,
        text=_TEXT,
    ),
)
"""REMEMBER as journals of older formats have it."""
RECALL: Final = ActionSpec(
    name="RECALL",
    summary="Search memory for what the words, or the body, say.",
    parameters=_schema(["query"], query=_TEXT),
    body="query",
    rest="query",
    core=True,
)
PLAN: Final = ActionSpec(
    name="PLAN",
    summary="Hand over a plan: steps that run by themselves, in parallel where they can, or a goal to plan for.",
    parameters=_schema(
        ["plan"],
        name={"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,39}$"},
        plan=_TEXT,
        plain={"from": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}},
        mode={"type": "string", "enum": list(PLAN_WAYS)},
        **dict.fromkeys(OPTIONS, _COUNT),
        report={"type": "boolean"},
        scope=_TEXT,
        intent={"type": "number", "minimum": 0},
    ),
    body="plan",
    documentation="""For a task with several foreseeable steps, above all if some of them can run at the same time. It goes on by itself: what fails \
is tried again, replaced or planned anew, within bounds. You get one summary; what each step gave is kept as $ID.

    PLAN keys mode=reflect
    goal: Say whether a mirror still serves our old key
    constraints: [read only]
    steps:
      - {id: old, call: shell.run, params: {command: "cat key.txt"}, contract: {non_empty: true}}
      - {id: one, call: web.fetch, params: {url: "https://a.example.org/key"}, timeout: 20, retries: 1}
      - {id: two, call: web.fetch, params: {url: "https://b.example.org/key"}, timeout: 20}
      - {id: same, agent: reader, join: any_of, after: [one, two], task: "Is the key on the page?", \
refs: {page: {step: "*"}, key: {step: old, field: stdout}}}
      - {id: note, call: shell.run, refs: {command: {step: same, template: "echo '{}' >> report.txt"}}}

A step has an id and either call (a function) with params, or agent (a name) with task, perhaps role. An agent \
hears the goal and what it builds on. All steps start at once, but for those that name others in after or refs.
- refs: {PARAMETER: {step: ID, field: a.b.0, template: "text {} text"}} puts in what another step gave: field picks a part, \
template puts it into a text; without them it is the whole result.
- join: any_of with after: [A, B]: a race. The first that succeeds lets the step begin, the others are stopped; \
step: "*" in a ref is the winner. What can't be undone can't be raced.
- contract: a step counts only if its result keeps it: {non_empty: true}, {regex: ...}, {schema: {...}}, {exit_status: 0}, or \
{judgement: "a question that a model answers with yes"}; with by: person, the user must accept it.
- by: person with task, in place of call or agent: the user does the step, and what they write is its result.
- retries: how often a failed step may be tried again; timeout: seconds.
- goal: what it is for; constraints: what must hold. Both are told to all who write, judge or do a step. $name in the plan hands over a variable.
With goal and no steps, a planner writes the steps. mode says when the results are judged, and pays when
"""
    + when_each_pays()
    + """
from=NAME takes the steps of a plan that the user has kept under that name; a body is then goal: and what it is for. What a \
kept plan leaves open is given beside its name: from=NAME key=value.
CALL NAME mode=MODE, or CALL NAME from=TEMPLATE, is the same as PLAN NAME; its message is the plan, or its goal in your own words.
All but static end with a report in words; report=false leaves it out.""",
    core=True,
)

_MODULE_NAME: Final[dict[str, JSON]] = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$"}

LOAD: Final = ActionSpec(
    name="LOAD",
    summary="Make a module of the catalogue known, one that somebody wrote before.",
    parameters=_schema(["name"], name=_MODULE_NAME),
    documentation=(
        "`LOAD name` makes the functions of a module of the catalogue usable here, also of one that an agent wrote in "
        "another session. With a name that is none it says which modules there are."
    ),
    idempotent=True,
    keywords=("module", "modules", "catalogue"),
    core=True,
)
DEPLOY: Final = ActionSpec(
    name="DEPLOY",
    summary="Put a module that you wrote into the sandbox; its functions can then be called.",
    parameters=_schema(
        ["name", "source"],
        name=_MODULE_NAME,
        source=_TEXT,
        requirements=_TEXT,
        egress=_TEXT,
        secrets=_TEXT,
        workspace={"type": "string", "enum": ["none", "read", "write"]},
    ),
    body="source",
    documentation="""A module is a Python file; its functions become actions for you and for other agents. Deploy it with its source as \
the body, or with source=$variable; deploy it again under the same name to change it.

    DEPLOY name=weather requirements="numpy==2.1.3"
    from ext_modules.sdk import Module

    module = Module("weather", "Forecasts for a place.", keywords=["weather", "rain"])

    @module.function(impact=0, summary="Forecast for a place")
    async def forecast(place: str, days: int = 3) -> str:
        \"\"\"place: a town; days: 1 to 7.\"\"\"
        return f"Rain in {place} for {days} days."

impact: 0 reads, 1 writes, 2 destroys or sends out. Types of parameters must be annotated. It runs without a network; \
egress="host:443" asks for hosts that it must reach, workspace=read or write for the files in /workspace. A person \
grants what it asks for, or does not.""",
    impact=1,
    idempotent=True,
    keywords=("module", "modules", "deploy"),
    core=True,
)

SKILL: Final = ActionSpec(
    name="SKILL",
    summary="Offer the user a skill that you wrote; it is kept for later sessions if they approve it.",
    parameters=_schema(["folder"], folder=_TEXT),
    documentation="""A skill is a folder of the workspace: what you learnt about a kind of task, for whoever has such a task again. It has \
the name of the skill (lower-case letters, digits and hyphens) and a SKILL.md; beside it, if needed, scripts/*.py or \
scripts/*.sh, and texts. SKILL.md begins with front matter, and then says step by step how it is done:

    ---
    name: monthly-report
    description: Makes the monthly report of a sales table. Use it when somebody asks for one.
    ---
    # Monthly report
    1. Run scripts/sum.py with the path of the table.

When its files are written, offer it: `SKILL skills/monthly-report`. The user sees all of them and says yes or no. Offer what \
will be of use again, and not a secret or what is true of one task only.""",
    rest="folder",
    idempotent=True,
    keywords=("skill", "skills"),
    core=True,
)

FRONTEND: Final = ActionSpec(
    name="FRONTEND",
    summary="Call a tool of the program that the user speaks through, as their message names it.",
    parameters=_schema(["tool"], tool=_TEXT, arguments=_TEXT),
    body="arguments",
    impact=1,
    core=True,
)

ANSWER: Final = ActionSpec(
    name="ANSWER",
    summary="Make what you wrote before, or the body, your answer.",
    parameters=_schema([], text=_TEXT),
    body="text",
    core=True,
)

PERSON: Final = ActionSpec(
    name="PERSON",
    summary="Ask the person to do a step of a plan, or to accept what one gave.",
    parameters=_schema(["task"], task=_TEXT, result=_TEXT),
    core=True,
)
"""What a plan does for its steps that are a person's. Agents can't write it, so it is not among `CORE_ACTIONS`."""

CORE_ACTIONS: Final[Mapping[str, ActionSpec]] = {
    spec.name: spec
    for spec in (
        CALL,
        CALL_ASYNC,
        WAIT,
        QUERY,
        PLAN,
        VAR,
        SHOW,
        HELP,
        COMPRESS,
        REMEMBER,
        RECALL,
        LOAD,
        DEPLOY,
        SKILL,
        FRONTEND,
        ANSWER,
    )
}


def in_order_of_use(specs: Iterable[ActionSpec]) -> list[ActionSpec]:
    """Sort functions by module: the shipped ones in the order in which agents need them, then the others by name.

    Within a module they stay in the order of its manifest, which is its author's.
    """

    def rank(spec: ActionSpec) -> tuple[int, str]:
        module = spec.module or ""
        place = _IN_USE.index(module) if module in _IN_USE else len(_IN_USE)
        return place, module

    return sorted(specs, key=rank)


@dataclass(frozen=True, slots=True)
class UnknownFunction:
    """A dotted name of a known module that has no such function."""

    name: str
    nearest: tuple[str, ...]
    """The closest names."""


class Registry:
    """The actions of one agent, by name and alias. `documented`: core actions whose documentation it may read."""

    def __init__(self, specs: Iterable[ActionSpec], *, documented: Iterable[ActionSpec] = ()) -> None:
        self._specs: dict[str, ActionSpec] = {}
        for spec in specs:
            self._specs[spec.name] = spec
            if spec.alias is not None:
                self._specs.setdefault(spec.alias, spec)
        self.modules: Final = frozenset(
            spec.module for spec in self._specs.values() if spec.module is not None
        )
        """The modules of its functions."""
        # A function that is also there under its alias is one.
        functions = {spec.name: spec for spec in self._specs.values() if not spec.core}
        self._functions = tuple(in_order_of_use(functions.values()))
        self.documented: Final = (*(spec for spec in self._functions if spec.documentation), *documented)
        """The actions whose documentation the agent may read."""

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def find(self, name: str) -> ActionSpec | UnknownFunction | None:
        """Return the action called `name`; `UnknownFunction` if a known module lacks it; None for plain code."""
        spec = self._specs.get(name)
        if spec is None and self.is_action(name):
            return UnknownFunction(name, tuple(self.nearest(name)))
        return spec

    def is_action(self, name: str) -> bool:
        """Whether a fenced block whose info string starts with `name` concerns an action."""
        if name in self._specs:
            return True
        return _DOTTED.fullmatch(name) is not None and name.split(".", 1)[0] in self.modules

    def nearest(self, name: str, most: int = 3) -> list[str]:
        """Return the function names closest to `name`, best first; at least one if the module has any."""
        names = [spec.name for spec in self.functions()]
        close = difflib.get_close_matches(name, names, n=most, cutoff=0.5)
        if close:
            return close
        module = name.split(".", 1)[0]
        return [other for other in names if other.startswith(module + ".")][:most]

    def nearest_actions(self, name: str, most: int = 3) -> list[str]:
        """Return the names of the core's actions closest to `name`, best first."""
        names = [spec.name for spec in self.actions()]
        return difflib.get_close_matches(name, names, n=most, cutoff=0.5)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names and aliases."""
        return tuple(self._specs)

    @cached_property
    def helped(self) -> frozenset[str]:
        """What HELP may be asked about, in small letters: names, aliases, modules, and the language."""
        return frozenset({"language", *self.modules, *(name.lower() for name in self.names)})

    def functions(self) -> Sequence[ActionSpec]:
        """The functions of modules, in their order of use."""
        return self._functions

    def actions(self) -> Sequence[ActionSpec]:
        """The actions of the core, in the order of their registration."""
        return [spec for name, spec in self._specs.items() if spec.core and name == spec.name]
