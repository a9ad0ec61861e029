"""The metrics of a server in the text format of Prometheus. Imported only when they are requested.

Labels are names of models, ways in which calls end, and codes: nothing from a session, and no person's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from iact.core.views.figures import BUCKETS, Figures, Workload

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(
    connections: int, refused: Mapping[tuple[str, str], int], work: tuple[Figures, Workload] | None
) -> bytes:
    """All metrics. `refused`: requests, by channel and code; `work`: of sessions, or None if none are served."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reading([*_server(connections, refused), *(_work(*work) if work else ())]))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)


class _Reading(Collector):
    """A snapshot that was read once."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _server(connections: int, refused: Mapping[tuple[str, str], int]) -> Iterable[Metric]:
    yield GaugeMetricFamily("iact_connections", "Websockets that are open.", value=connections)
    refusals = CounterMetricFamily("iact_refusals", "Requests that were refused.", labels=["over", "code"])
    for labels, count in refused.items():
        refusals.add_metric(labels, count)
    yield refusals


def _work(figures: Figures, now: Workload) -> Iterable[Metric]:
    yield GaugeMetricFamily("iact_sessions_open", "Sessions that are open.", value=now.sessions)
    yield GaugeMetricFamily(
        "iact_sessions_at_work", "Open sessions in which an agent has work to do.", value=now.at_work
    )
    yield GaugeMetricFamily(
        "iact_questions_waiting", "Questions that wait for a person.", value=now.questions
    )
    yield GaugeMetricFamily("iact_modules_running", "Containers of modules that run.", value=now.modules)
    yield CounterMetricFamily("iact_records", "Records written to journals.", value=figures.records)
    turns = CounterMetricFamily("iact_model_turns", "Turns and replies that models wrote.", labels=["model"])
    tokens = CounterMetricFamily("iact_model_tokens", "Tokens of models.", labels=["model", "kind"])
    seconds = HistogramMetricFamily(
        "iact_model_call_seconds", "Seconds that models took for a turn or a reply.", labels=["model"]
    )
    bounds = [*map(str, BUCKETS), "+Inf"]
    for name, model in figures.models.items():
        turns.add_metric([name], model.turns)
        for kind, count in (("read", model.read), ("cached", model.cached), ("written", model.written)):
            tokens.add_metric([name, kind], count)
        within = list(zip(bounds, accumulate(map(float, model.within)), strict=True))
        seconds.add_metric([name], within, model.seconds)
    yield from (turns, tokens, seconds)
    calls = CounterMetricFamily("iact_module_calls", "Calls of modules that ended.", labels=["outcome"])
    for outcome, count in figures.calls.items():
        calls.add_metric([outcome], count)
    yield calls
