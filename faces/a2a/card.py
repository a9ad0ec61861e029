"""The agent card: this server's public description, with which other agents can use it."""

from __future__ import annotations

from importlib.metadata import version

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)


def card_at(address: str) -> AgentCard:
    """The card of a server. `address`: the address for requests, as seen by the client that asks for the card."""
    return AgentCard(
        name="iact",
        description="A tree of agents that works on a task with its modules, behind a gate, and says what came of it.",
        version=version("iact"),
        supported_interfaces=[
            AgentInterface(url=address, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        default_input_modes=["text/plain", "application/json", "application/octet-stream"],
        default_output_modes=["text/plain", "application/json"],
        security_schemes={
            "bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
        },
        security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})],
        skills=[
            AgentSkill(
                id="work",
                name="Work on a task",
                description="Answers a question or does a task that is said in words; files come with the message.",
                tags=["agents", "tools", "planning"],
            )
        ],
    )
