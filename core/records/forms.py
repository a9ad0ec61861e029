"""What modules ask a person in the course of their calls, and what the person said."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.form_values import FormField
from iact.core.records.mark import Outcome
from iact.core.records.person import PersonContent
from iact.core.records.skills import SkillOffer

FormDecision: TypeAlias = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndCall:
    """A tool of the user's front end that an agent calls. What it gives back is filled in as the form's only field."""

    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAsk(Content):
    """A call of a module, or an agent that offers a skill, asks a person something. It never enters a context, and no agent can answer it."""

    KIND: ClassVar[str] = "form"
    OP: ClassVar[str] = "ask"

    call: Outcome[int]
    """The record of the call that asks."""
    function: Outcome[str]
    message: Outcome[str]
    """The module's words, with what nobody sees written out."""
    fields: Outcome[tuple[FormField, ...]] = ()
    """What is to be filled in; empty: yes or no."""
    url: Outcome[str] = ""
    """An address that the person is asked to open themselves."""
    skill: Outcome[SkillOffer | None] = None
    """A skill that the agent wrote and offers; only the action SKILL asks about one."""
    tool: Outcome[FrontEndCall | None] = None
    """A tool of the front end, which is to run it; only the action FRONTEND asks for one."""
    seconds: Outcome[float]
    """How long a person has: a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAnswer(PersonContent):
    """What they said. It stands here before it goes to the module, and goes nowhere else."""

    KIND: ClassVar[str] = "form"
    OP: ClassVar[str] = "answer"

    ask: Outcome[int]
    """The record of the question."""
    decision: Outcome[FormDecision]
    """"cancel": nobody decided."""
    by: Outcome[Literal["user", "time", "core"]]
    """Who said so; "time" if nobody did in time; "core" if its call waits for no answer any more."""
    values: Outcome[Mapping[str, JSON] | None] = None
    """What was filled in, by field."""
