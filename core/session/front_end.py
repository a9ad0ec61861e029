"""Tools of the program that a person uses to talk to a session: an agent calls a tool, and that program runs it.

The call passes the gate like any other. It then becomes a question whose answer is the tool's result: so it is in the
journal before it is sent, is answered once, and ends with its call. The result counts as data from outside.
"""

from __future__ import annotations

import json

from iact.core.characters import escaped
from iact.core.gate.gate import Ticket
from iact.core.modules.invoker import FunctionCall
from iact.core.modules.outcome import Completed, Outcome, Raised
from iact.core.ports import JSON
from iact.core.records.forms import FrontEndCall
from iact.core.session.forms import Forms
from iact.core.session.live import Live
from iact.core.tree.agent import Agent, Pending


class FrontEndTools:
    """The calls of one session's agents that go to the front end."""

    def __init__(self, live: Live, forms: Forms) -> None:
        self._live = live
        self._forms = forms

    async def carry_out(self, ticket: Ticket, call: FunctionCall, agent: Agent, pending: Pending) -> Outcome:
        """Let the front end run a tool. Errors that the agent can fix are part of the outcome."""
        ticket.redeem(call.request)
        tool, arguments = _text(call, "tool").strip(), _object(_text(call, "arguments"))
        known = self._live.tree.tools
        if tool not in known:
            why = f"The front end has no tool {tool[:100]!r}; it has {', '.join(known) or 'none'}."
            return Raised("UnknownTool", why, "", "")
        if arguments is None:
            return Raised(
                "ValueError", "The arguments of a front end's tool are a JSON object in the body.", "", ""
            )
        shown = json.dumps(arguments, ensure_ascii=False)
        words = escaped(f"{agent.path} calls the tool {tool} of your front end: {shown}", every=True)
        asked = FrontEndCall(name=tool, arguments=arguments)
        reply = await self._forms.decide(agent, pending, words, tool=asked)
        if reply.action == "accept":
            return Completed(str(reply.values["result"]), "text/plain", {}, None, (), None)
        refused = "The user did not let it run." if reply.action == "decline" else reply.reason
        return Raised("NotRun", f"The tool {tool} of the front end was not run. {refused}".strip(), "", "")


def _text(call: FunctionCall, name: str) -> str:
    value = call.attached.get(name)
    return value.text() if value is not None else str(call.arguments.get(name, ""))


def _object(text: str) -> dict[str, JSON] | None:
    """The JSON object in a text, whichever reader parses it; None if it is not one."""
    try:
        found = json.loads(text, parse_constant=str) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
