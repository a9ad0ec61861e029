"""Traces through the product: a collector receives the same spans live as journals yield afterwards."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from iact.core.journal import read_journal
from iact.faces.otel.span import Attribute, Span, SpanEvent, SpanLink
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, kill
from tests.endpoint import Endpoint, Reply, Request
from tests.faces.otel.laws import check, check_tree

LEADS, WORKERS = 10, 19
"""Ten agents below the root that each have nineteen."""


@dataclass
class Collector:
    """Takes spans by OTLP over HTTP, as a collector does."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def of(self, trace: str) -> dict[str, Span]:
        """The spans of a trace, by id; one that came twice was the same both times."""
        found: dict[str, Span] = {}
        for one in self.spans:
            if one.trace_id == trace:
                assert found.setdefault(one.span_id, one) == one
        return found

    def take(self, body: bytes) -> None:
        """Read one request."""
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(named["service.name"])
            for scope in resource.scope_spans:
                self.spans += map(_span, scope.spans)


@contextmanager
def collector() -> Iterator[Collector]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
            made.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def _span(one: trace_pb2.Span) -> Span:
    attributes = {item.key: _value(item.value) for item in one.attributes}
    failed = one.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    return Span(
        one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex(), one.name,
        "client" if one.kind == trace_pb2.Span.SPAN_KIND_CLIENT else "internal",
        one.start_time_unix_nano, one.end_time_unix_nano, attributes,
        tuple(
            SpanEvent(event.name, event.time_unix_nano, {item.key: _value(item.value) for item in event.attributes})
            for event in one.events
        ),
        tuple(SpanLink(link.trace_id.hex(), link.span_id.hex()) for link in one.links),
        str(attributes["error.type"]) if failed else "",
    )  # fmt: skip


def _value(value: AnyValue) -> Attribute:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "array_value":
            return tuple(one.string_value for one in value.array_value.values)
    raise AssertionError(value)


def _plan(name: str, agent: str) -> str:
    return f"```PLAN {name}\nsteps:\n  - {{id: part, agent: {agent}, task: Do your part.}}\n```"


def _many(request: Request) -> Reply | str:
    """A root with ten leads of nineteen workers each, one of which has a plan with a plan in it."""
    path = request.agent
    name, depth = path.rpartition("/")[2], path.count("/")
    if request.turn > 0:
        return f"{name or 'root'} is done."
    if path == "/":
        return "\n".join(f"```CALL_ASYNC lead{one}\nGo.\n```" for one in range(LEADS)) + "\n```WAIT\n```"
    if name.startswith("lead"):
        return "\n".join(f"```CALL_ASYNC worker{one}\nGo.\n```" for one in range(WORKERS)) + "\n```WAIT\n```"
    if path == "/lead0/worker0":
        return _plan("outer", "planner")
    if name == "planner":
        return _plan("inner", "leaf")
    assert depth >= 2
    return f"{name} is done."


@pytest.mark.no_prefix_law("the process is killed in the middle of what it asks")
def test_two_hundred_agents_nested_plans_a_kill_and_a_fork(tmp_path: Path, stage: Stage) -> None:
    with collector() as told, Endpoint(_many, by_turn=True, crashes=True) as endpoint:
        product = stage.product(endpoint, OTEL_EXPORTER_OTLP_ENDPOINT=told.url, **NO_MODULES)
        with product.started("run", "--json", "Go") as process:
            assert endpoint.wait_for(80)
            assert kill(process)
        (journal,) = product.journals()
        before = len(read_journal(journal).records)
        session = journal.parent.name
        product.ask("And now?", session=session)

        records = read_journal(journal).records
        assert len(records) > before
        made = check(records)
        agents = {one.attributes["gen_ai.agent.id"] for one in made if one.name.startswith("invoke_agent")}
        assert len(agents) >= 200
        assert "/lead0/worker0/outer/planner/inner/leaf" in agents
        operations = Counter(str(one.attributes["gen_ai.operation.name"]) for one in made)
        assert operations["invoke_workflow"] >= 2
        live = told.of(made[0].trace_id)
        check_tree(list(live.values()))
        assert live == {one.span_id: one for one in made}
        assert told.services == {"iact"}

        half = len(records) // 2
        forked = product.run("journal", "fork", session, "--at", str(half), "--say", "Once more", "--json")
        assert forked.status == 0, forked
        (other,) = product.journals() - {journal}
        again = check(read_journal(other).records)
        assert again[0].links[0].span_id in live
        assert told.of(again[0].trace_id) == {one.span_id: one for one in again}
        assert told.of(made[0].trace_id) == live

        ran = product.run("journal", "spans", session, "--otlp")
        assert (ran.status, ran.stdout) == (0, f"Sent {len(made)} spans, trace {made[0].trace_id}.\n")
        assert told.of(made[0].trace_id) == live  # the same spans once more
        printed = json.loads(product.run("journal", "spans", session).stdout)
        assert [one["span_id"] for one in printed] == [one.span_id for one in made]


def test_a_collector_that_is_down_costs_a_warning(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Hello."]})
    product = stage.product(endpoint, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", **NO_MODULES)
    ran = product.run("run", "Hi")
    assert (ran.status, ran.stdout) == (0, "Hello.\n"), ran
    assert "Traceback" not in ran.stderr
    session = next(iter(product.journals())).parent.name
    failed = product.run("journal", "spans", session, "--otlp")
    assert failed.status == 1
    assert failed.sentence.startswith("The collector did not accept the spans; 0 of ")
    unset = stage.product(endpoint)
    assert (
        "OTEL_EXPORTER_OTLP_ENDPOINT"
        in unset.run("journal", "spans", str(product.data / "sessions" / session), "--otlp").sentence
    )


def test_nothing_of_opentelemetry_is_imported_without_a_collector(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Hello."]})
    product = stage.product(endpoint, PYTHONPROFILEIMPORTTIME="1", **NO_MODULES)
    ran = product.run("run", "Hi", inside=("env",))
    assert ran.status == 0, ran
    imported = [
        line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")
    ]
    assert "iact.core.session.runtime" in imported
    assert not [one for one in imported if one.startswith(("opentelemetry", "iact.faces"))]
