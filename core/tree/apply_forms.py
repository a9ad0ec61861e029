"""How records about modules' questions to people change the tree.

What a module asks and what a person answers are outcomes. The rest follows from earlier records, so a forgery is named:
the call that asks is in progress, a question is answered once, and a person's answer fits the form.
"""

from __future__ import annotations

from iact.core.errors import UsageError
from iact.core.language.actions import FRONTEND, SKILL
from iact.core.records.form_values import filled
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.record import Record
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import agent_of, expect
from iact.core.tree.tree import Tree


def asking(agent: Agent, call: int) -> Pending | None:
    """Return the agent's call in progress that has this record."""
    return next((one for one in agent.actions if one.call and one.call == call), None)


def ask(tree: Tree, record: Record, said: FormAsk) -> None:
    """Apply a call's question to a person."""
    call = asking(agent_of(tree, record), said.call)
    expect(tree, record, call is not None, "is asked by no call that is under way")
    expect(
        tree, record, call is None or call.spec.name == said.function, "is of another function than its call"
    )
    expect(tree, record, not (said.url and said.fields), "asks for an address and for a form at once")
    offers, runs = said.function == SKILL.name, said.function == FRONTEND.name
    expect(tree, record, offers == (said.skill is not None), "offers what its call does not")
    expect(
        tree, record, said.skill is None or not (said.url or said.fields), "offers a skill and asks for more"
    )
    expect(tree, record, runs == (said.tool is not None), "runs what its call does not")
    known = said.tool is None or said.tool.name in tree.tools
    expect(tree, record, known, "runs a tool that the front end does not have")
    expect(tree, record, not tree.lockdown, "is asked in a lockdown")
    tree.forms[record.n] = said


def answer(tree: Tree, record: Record, said: FormAnswer) -> None:
    """Apply the answer: a person filled in the form or refused, or no one did."""
    asked = tree.forms.pop(said.ask, None)
    expect(tree, record, asked is not None, "answers what was not asked")
    decided = said.decision != "cancel"
    expect(tree, record, decided == (said.by == "user"), f"is an answer that {said.by} can't give")
    if asked is not None:
        expect(tree, record, _fits(asked, said), "holds what the form does not ask for")


def _fits(asked: FormAsk, said: FormAnswer) -> bool:
    """Whether the answer has all that was asked for and nothing else. A refusal has no values."""
    if said.decision != "accept" or not asked.fields:
        return said.values is None
    try:
        return (
            said.values is not None
            and filled(asked.fields, said.values, longest=asked.longest) == said.values
        )
    except UsageError:
        return False
