"""The execution gate (IGX): scopes, intents, impacts, tickets. Pure."""

from iact.core.gate.gate import CallRequest, Denial, Ticket, TicketError, arguments_digest, decide
from iact.core.gate.grant import DEFAULT_SCOPE, Grant, Scope
from iact.core.gate.impact import impact_of

__all__ = [
    "DEFAULT_SCOPE",
    "CallRequest",
    "Denial",
    "Grant",
    "Scope",
    "Ticket",
    "TicketError",
    "arguments_digest",
    "decide",
    "impact_of",
]
