"""What a client asks for beside its message: tools of its own, the form and length of the answer, and how it is asked.

Each is kept, or refused with a sentence; none is ignored in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.errors import UsageError
from iact.core.session.answer_form import AnswerForm, answer_form
from iact.faces.client_tools import ClientTool, told_tools
from iact.faces.responses.output import QUESTION

MODELS: Final = ("iact",)
"""The models that a client can name."""

_CHARACTERS: Final = 4
"""How many characters count as a token."""
_REFUSED_CHOICE: Final = (
    "An agent decides itself whether it calls a tool, so tool_choice can be auto or none. For an answer of a certain form "
    "give a JSON Schema."
)


class UnknownModel(UsageError):
    """The client names a model that is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no model {name[:100]!r} here; there is {', '.join(MODELS)}. Which models answer inside of it is "
            "chosen in iact."
        )


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """What a client asks for. The default is what a client asks for that sends only a message."""

    by_call: bool = False
    """Whether the client declares the function that asks a person; otherwise it is asked in words."""
    tools: tuple[ClientTool, ...] = ()
    """The client's own tools."""
    form: AnswerForm | None = None
    """The form of the answer; None: text."""
    longest: int | None = None
    """The most characters of the answer."""

    @property
    def words(self) -> str:
        """What the root is told about the answer."""
        return self.form.words if self.form is not None else ""

    @property
    def told_tools(self) -> str:
        """What agents are told about the client's tools."""
        return told_tools(self.tools)


def terms_of(
    model: str,
    tools: Sequence[Mapping[str, object]] | None,
    tool_choice: object,
    form: object,
    most_tokens: int | None,
) -> AnswerTerms:
    """Read what a client asks for.

    `tools`: functions, in either of OpenAI's forms. `form`: `text.format` of Responses or `response_format` of chats.

    Raises:
        UsageError: something of it can't be kept; the message says what.
    """
    if model not in MODELS:
        raise UnknownModel(model)

    functions = [_function(tool) for tool in tools or ()]
    own = tuple(tool for tool in functions if tool.name != QUESTION)
    if tool_choice not in (None, "auto", "none"):
        raise UsageError(_REFUSED_CHOICE)
    if tool_choice == "none":
        own = ()
    told_tools(own)  # refuses what can't be told

    longest = None if most_tokens is None else most_tokens * _CHARACTERS
    by_call = any(tool.name == QUESTION for tool in functions)
    return AnswerTerms(by_call, own, _form(form), longest)


def _function(tool: Mapping[str, object]) -> ClientTool:
    inner = tool.get("function")
    told = inner if isinstance(inner, dict) else tool
    name, description = told.get("name"), told.get("description")
    if tool.get("type", "function") != "function" or not isinstance(name, str):
        raise UsageError(
            "Of tools there can be functions of your program here; others, like web_search, are modules of iact. Leave out "
            f"the tool of the type {str(tool.get('type'))[:60]!r}."
        )
    return ClientTool(name, description if isinstance(description, str) else "", told.get("parameters") or {})


def _form(given: object) -> AnswerForm | None:
    if not isinstance(given, dict):
        return None
    match given.get("type"):
        case None | "text":
            return None
        case "json_object":
            return AnswerForm()
        case "json_schema":
            inner = given.get("json_schema")
            return answer_form(inner.get("schema") if isinstance(inner, dict) else given.get("schema"))
        case other:
            raise UsageError(
                f"There is no form of answers {str(other)[:60]!r}; there are text, json_object and json_schema."
            )
