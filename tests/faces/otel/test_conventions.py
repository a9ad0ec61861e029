"""Spans contain what the conventions for generative AI require, with the names of their registry.

The names come from the registry's own package. That package has neither the requirements of each span nor operations
that were added later; both are copied here from `model/gen-ai/spans.yaml` of
open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as registry
from opentelemetry.semconv.attributes import error_attributes

from iact.core.records.record import Record
from iact.core.stored.journals import read_records
from iact.faces.otel.span import Span
from iact.faces.otel.spans import spans
from tests.core.session.fakes import Asked
from tests.core.session.memories import WISH, FakeMemory
from tests.core.session.test_memory import talk
from tests.faces.conformance import assert_has, assert_names
from tests.faces.otel.conventions import ABSENT, SPANS, table
from tests.faces.otel.laws import check
from tests.faces.otel.test_spans import EXAMPLES, JOURNALS

NAMES: Final = {
    value for name, value in vars(registry).items() if name.startswith("GEN_AI_") and isinstance(value, str)
}
LATER_NAMES: Final = {"gen_ai.memory.records", "gen_ai.memory.record.count"}
OPERATIONS: Final = {one.value for one in registry.GenAiOperationNameValues}
LATER_OPERATIONS: Final = {"plan", "search_memory", "create_memory"}

COMMON: Final = ("gen_ai.operation.name",)
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "chat": ("gen_ai.provider.name",),
    "create_agent": ("gen_ai.provider.name",),
    "invoke_agent": ("gen_ai.provider.name",),
    "invoke_workflow": (),
    "plan": (),
    "execute_tool": ("gen_ai.tool.name",),
    "search_memory": (),
    "create_memory": (),
}
IF_AVAILABLE: Final[dict[str, tuple[str, ...]]] = {
    "chat": ("gen_ai.request.model", "gen_ai.conversation.id", "gen_ai.request.stream"),
    "create_agent": ("gen_ai.request.model", "gen_ai.agent.id", "gen_ai.agent.name"),
    "invoke_agent": (
        "gen_ai.request.model",
        "gen_ai.conversation.id",
        "gen_ai.agent.id",
        "gen_ai.agent.name",
    ),
    "invoke_workflow": ("gen_ai.workflow.name",),
    "plan": ("gen_ai.agent.id", "gen_ai.agent.name"),
    "execute_tool": ("gen_ai.tool.call.id", "gen_ai.tool.type"),
    "search_memory": (),
    "create_memory": (),
}
SPAN_NAMES: Final = {
    "chat": "gen_ai.request.model", "create_agent": "gen_ai.agent.name", "invoke_agent": "gen_ai.agent.name",
    "invoke_workflow": "gen_ai.workflow.name", "plan": "gen_ai.agent.name", "execute_tool": "gen_ai.tool.name",
}  # fmt: skip
"""By which attribute a span is named after its operation."""
CLIENT: Final = {"chat", "create_agent"}
OPT_IN: Final = {
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.memory.records", "gen_ai.system_instructions",
}  # fmt: skip


def all_spans(*, content: bool) -> Iterator[Span]:
    for journal in (*JOURNALS, *EXAMPLES):
        yield from spans(read_records(journal), content=content)


@pytest.fixture(scope="module")
def with_memory(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A session that memory helps, whose root keeps something and looks it up."""

    def script(asked: Asked) -> str:
        if asked.turn == 0:
            return "```REMEMBER kind=lesson\nThe port is 81.\n```\n\n```RECALL which port\n```"
        return "Done."

    return talk(tmp_path_factory.mktemp("memory"), script, FakeMemory((WISH,)), "Format the file.")


def check_required(one: Span) -> str:
    """Hold a span to what its operation requires; gives the operation."""
    operation = str(one.attributes["gen_ai.operation.name"])
    for name in (*COMMON, *REQUIRED[operation], *IF_AVAILABLE[operation]):
        assert one.attributes[name] not in ("", None), (name, one)
    assert one.kind == ("client" if operation in CLIENT else "internal")
    named = SPAN_NAMES.get(operation)
    assert one.name == (f"{operation} {one.attributes[named]}" if named else operation)
    assert bool(one.error) == (error_attributes.ERROR_TYPE in one.attributes)
    return operation


@pytest.mark.parametrize("content", [False, True], ids=["without content", "with content"])
def test_every_span_has_what_its_operation_requires(content: bool) -> None:
    met: Counter[str] = Counter()
    for one in all_spans(content=content):
        met[check_required(one)] += 1
        assert content or not OPT_IN & one.attributes.keys()
    assert met.keys() >= REQUIRED.keys() - {"search_memory", "create_memory"}


def test_operations_on_memory_are_spans_of_their_own(with_memory: list[Record]) -> None:
    made = check(with_memory)
    met = Counter(check_required(one) for one in made)
    assert (met["search_memory"], met["create_memory"]) == (
        3,
        1,
    )  # before each of two turns, and one that it asked for


def test_names_and_operations_are_those_of_the_registry() -> None:
    names = {name for one in all_spans(content=True) for name in one.attributes}
    theirs = {name for name in names if name.startswith("gen_ai.")}
    assert theirs <= NAMES | LATER_NAMES
    assert {name for name in names - theirs if not name.startswith("iact.")} == {error_attributes.ERROR_TYPE}
    assert set(REQUIRED) <= OPERATIONS | LATER_OPERATIONS
    assert not LATER_OPERATIONS & OPERATIONS, "the package has them by now: take them from there"
    providers = {one.value for one in registry.GenAiProviderNameValues}
    assert {
        one.attributes["gen_ai.provider.name"] for one in all_spans(content=False) if one.kind == "client"
    } <= providers


def test_events_and_errors_are_of_few_kinds() -> None:
    """Tracing tools count by them."""
    events = {event.name for one in all_spans(content=False) for event in one.events}
    assert events <= {
        "iact.gate.verdict", "iact.clearance.asked", "iact.clearance.answered", "iact.call", "iact.wait", "iact.paused",
        "iact.resumed",
    }  # fmt: skip
    assert len({one.error for one in all_spans(content=False)}) < 15


def test_the_guide_says_which_attributes_are_there(with_memory: list[Record]) -> None:
    """Of all that the conventions have of a span; each that is on no span of its kind has one reason."""
    met: defaultdict[str, set[str]] = defaultdict(set)
    for one in (*all_spans(content=True), *spans(with_memory, content=True)):
        met[str(one.attributes["gen_ai.operation.name"])] |= one.attributes.keys()
    assert met.keys() == SPANS.keys()
    absent = {name for operation, wanted in SPANS.items() for name in wanted.keys() - met[operation]}
    told = [name for names in ABSENT.values() for name in names]
    assert sorted(told) == sorted(absent), absent ^ {*told}
    for operation, wanted in SPANS.items():
        required = {name for name, level in wanted.items() if level == "required"}
        assert required <= met[operation]
    assert_has("opentelemetry.md", table(met))
    assert_names("opentelemetry.md", "opentelemetry-semantic-conventions", "opentelemetry-proto")
