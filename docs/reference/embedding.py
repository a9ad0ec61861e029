"""The page of the calls with which a program embeds iact, with their types, from the code itself."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from iact import settings, wiring
from iact.core import errors
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views import events, question_text
from iact.faces import conversation, failure

_WIDTH: Final = 110
"""The length up to which a signature is on one line."""

INTRO: Final = (
    "What a program calls that embeds iact, in the order in which it does. [The guide](../how-to/embed.md) has programs "
    "that run. `Runtime` and `Session` are exported by `iact.core`. The package has its types with it (`py.typed`), and a "
    "type checker reads them in a clone as in an installed wheel."
)

STEPS: Final[Mapping[str, tuple[object, ...]]] = {
    "Open": (settings.load, wiring.open_runtime, Runtime.open, Runtime.sessions),
    "Ask": (Session.ask, Session.say, Session.answer, Session.upload, conversation.say),
    "Watch": (conversation.Exchange, Session.watch, Session.records),
    "What happens": (
        events.RecordAppended,
        events.Delta,
        events.Activity,
        events.OutputEvent,
        events.TreeChanged,
    ),
    "Approve": (
        question_text.told,
        Session.clear,
        Session.clear_host,
        Session.answer_form,
        conversation.answer,
        conversation.ClientAnswer,
    ),
    "Know of a failure": (failure.failure_of, failure.WorkFailure, failure.FailureKind),
    "Steer": (Session.inject, Session.pause, Session.resume, Session.cancel, Session.set_intent),
    "Close": (Runtime.close,),
}
"""What there is for each step."""


def body() -> Iterator[str]:
    """The parts of the page behind its introduction."""
    for step, documented in STEPS.items():
        yield f"## {step}"
        for one in documented:
            yield from _entry(one)
    yield "## Errors"
    yield "Every error is an `IactError` of `iact.core.errors`, and says in a sentence what happened, why, and what to do."
    yield _errors()


def _entry(documented: object) -> Iterator[str]:
    assert inspect.isclass(documented) or inspect.isfunction(documented)
    owner = documented.__qualname__.rpartition(".")[0]
    module = documented.__module__
    yield f"### `{documented.__qualname__}`" if owner else f"### `{module}.{documented.__qualname__}`"
    code = _fields(documented) if inspect.isclass(documented) else _signature(documented)
    if code:
        yield f"```python\n{code}\n```"
    yield _told(documented)


def _signature(function: object) -> str:
    assert inspect.isfunction(function)
    plain = inspect.unwrap(function)
    signature = inspect.signature(plain)
    awaited = "async " if inspect.iscoroutinefunction(plain) else ""
    result = f" -> {_quoted(signature.return_annotation)}: ..."
    # What opens something and closes it at the end is entered with `async with`.
    if inspect.isasyncgenfunction(plain):
        inner = str(signature.return_annotation).removeprefix("AsyncIterator[").removesuffix("]")
        result = f" -> AbstractAsyncContextManager[{inner}]: ..."

    parameters = [_parameter(one) for one in signature.parameters.values()]
    kinds = [one.kind for one in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    head = f"{awaited}def {plain.__name__}("
    line = f"{head}{', '.join(parameters)}){result}"
    if len(line) <= _WIDTH:
        return line
    rows = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{head}\n{rows}){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    typed = parameter.name
    if parameter.annotation is not parameter.empty:
        typed = f"{typed}: {_quoted(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return typed
    # A function that is a default has no name that says anything.
    default = "..." if callable(parameter.default) else _quoted(repr(parameter.default))
    return f"{typed} = {default}"


def _quoted(code: object) -> str:
    """Code with the quotes that ours has."""
    return str(code).replace("'", '"')


def _told(documented: object) -> str:
    """A docstring as Markdown: what is raised is a list."""
    text, _, raised = (inspect.getdoc(documented) or "").partition("\n\nRaises:\n")
    if not raised:
        return text
    rows = textwrap.dedent(raised).replace("\n    ", " ").splitlines()
    named = [row.partition(": ") for row in rows]
    listed = [f"- raises `{name}`: {why}" for name, _, why in named]
    return "\n".join([text, "", *listed])


def _fields(described: type) -> str:
    """The fields of a class of data; empty for others."""
    if not dataclasses.is_dataclass(described):
        return ""
    rows = [f"    {one.name}: {_quoted(one.type)}" for one in dataclasses.fields(described) if one.repr]
    return "\n".join([f"class {described.__name__}:", *rows])


def _errors() -> str:
    found = [
        one
        for _, one in inspect.getmembers(errors, inspect.isclass)
        if issubclass(one, errors.IactError) and one.__module__ == errors.__name__
    ]
    rows = [f"| `{one.__name__}` | {(inspect.getdoc(one) or '').splitlines()[0]} |" for one in found]
    return "\n".join(["| error | |", "|---|---|", *rows])
