"""Questions that modules ask a person during their calls, and the person's answers."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.form_values import LONGEST_RESULT, LONGEST_TEXT, FormField
from iact.core.records.mark import Outcome
from iact.core.records.person import PersonContent
from iact.core.records.skills import SkillOffer

CHANGE: Final = "change"
"""The field in which a person says what should be other about a result; empty if they accept it."""

FormDecision: TypeAlias = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndCall:
    """A tool of the user's front end that an agent calls. Its result is entered as the form's only field."""

    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAsk(Content):
    """A module's call, or an agent that offers a skill, asks a person. Never enters a context; no agent can answer."""

    KIND: ClassVar[str] = "form"
    OP: ClassVar[str] = "ask"

    call: Outcome[int]
    """The record of the call that asks."""
    function: Outcome[str]
    message: Outcome[str]
    """The module's text, with invisible characters escaped."""
    fields: Outcome[tuple[FormField, ...]] = ()
    """The fields to fill in. Empty: the question is answered by yes or no."""
    url: Outcome[str] = ""
    """An address that the person is asked to open."""
    skill: Outcome[SkillOffer | None] = None
    """A skill that the agent wrote and offers. Only the action SKILL asks about one."""
    tool: Outcome[FrontEndCall | None] = None
    """A tool that the front end is to run. Only the action FRONTEND asks for one."""
    seconds: Outcome[float]
    """How long a person has: a setting. 0: as long as they want, because a step of a plan is theirs."""

    @property
    def longest(self) -> int:
        """The most characters of a text in it: a person enters less than a program writes."""
        return LONGEST_TEXT if self.tool is None else LONGEST_RESULT

    @property
    def by_agent(self) -> bool:
        """Whether an agent asks that works on a step of a plan, and not a module."""
        return self.function == "CALL"

    @property
    def by_plan(self) -> bool:
        """Whether a plan asks: the person is to do a step, or to accept what one gave."""
        return self.function == "PERSON"

    @property
    def accepts(self) -> bool:
        """Whether a plan asks the person to accept a result."""
        return self.by_plan and any(field.name == CHANGE for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAnswer(PersonContent):
    """The answer to a form. It is recorded before it goes to the module, and it goes nowhere else."""

    KIND: ClassVar[str] = "form"
    OP: ClassVar[str] = "answer"

    ask: Outcome[int]
    """The record of the question."""
    decision: Outcome[FormDecision]
    """"cancel" means that nobody decided."""
    by: Outcome[Literal["user", "time", "core", "policy"]]
    """Who answered: "time" if nobody answered in time; "core" if the call no longer waits for an answer;
    "policy" if no person was available."""
    values: Outcome[Mapping[str, JSON] | None] = None
    """The entered values, by field."""
