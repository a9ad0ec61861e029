"""The cost of each place of the dynamic block, counted by a real llama.cpp server: tables, and JSON with `--json FILE`.

    python -m benchmarks.tail [--turns N] [--only TEXT …] [--children N] [--json FILE]

The product runs one session, and the same work runs in five layouts, each against a new server with the embedded
model's file, through iact's own client and without steering. Prompt tokens and cached tokens are those that the
endpoint reports. They do not depend on what else the machine does, but seconds do. Then the agent gets children at the
end of its session: with their own prompt, with the static prompt of all agents, and forked from their caller.
`--only product` is enough to check the product's targets.

With 30 turns or more, exits with status 1 if the product misses its targets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx

from benchmarks import kept
from benchmarks.tail.layouts import CHILDREN, LAYOUTS, Layout, Turn, changes, conversation
from benchmarks.tail.product import play
from iact.core.models.openai import ModelEndpoint, OpenAIModel, Timeouts
from iact.core.ports import JSON, ChatMessage, StreamRestart, TextDelta, Usage, UsageReport
from iact.models import download
from iact.models.embedded import CONTEXT, profile_of
from iact.models.llama_process import LlamaProcess
from iact.models.weights import LARGE, ChosenFile

REPLY: Final = 24
"""The tokens of a reply."""

PRODUCT: Final = "the product"
REUSED: Final = 0.93
LENGTH: Final = 0.60
_FULL: Final = 30
_PATIENCE: Final = 3600.0
"""The most seconds that a busy machine may take for the first token."""

_KEY: Final = secrets.token_hex(16)
_FIXED: Final[dict[str, JSON]] = {"temperature": 0, "seed": 1}


class _Clock:
    """The real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def _model() -> AsyncIterator[OpenAIModel]:
    """Start a new server with an empty cache. Yields a client."""
    server = LlamaProcess(LARGE.path, _KEY, CONTEXT)
    address = await asyncio.to_thread(server.start)
    client = OpenAIModel(
        ModelEndpoint(url=f"{address}/v1", key=_KEY, extra=_FIXED, direct=True),
        profile=profile_of(ChosenFile(LARGE)),
        clock=_Clock(),
        rng=random.Random(1),
        timeouts=Timeouts(first=_PATIENCE, between=_PATIENCE),
    )
    try:
        yield client
    finally:
        await client.close()
        await asyncio.to_thread(server.stop)


@dataclass(frozen=True, slots=True)
class Call:
    """One measured model call. `first`: seconds to the first token. `again`: how often it was started again."""

    usage: Usage
    first: float
    seconds: float
    text: str
    again: int = 0

    @property
    def evaluated(self) -> int:
        """Prompt tokens that were not in the cache."""
        return self.usage.prompt_tokens - self.usage.cached_tokens


async def _call(model: OpenAIModel, messages: Sequence[ChatMessage]) -> Call:
    began = time.monotonic()
    usage, first, text, again = Usage(), 0.0, "", 0
    async with aclosing(model.stream(messages, max_tokens=REPLY)) as events:
        async for event in events:
            match event:
                case TextDelta(piece):
                    first = first or time.monotonic() - began
                    text += piece
                case UsageReport(reported):
                    usage = reported
                case StreamRestart():
                    began, first, text, again = time.monotonic(), 0.0, "", again + 1
                case _:
                    pass
    if usage.estimated:
        raise RuntimeError("The endpoint reported no usage, so nothing can be told.")
    return Call(usage, first, time.monotonic() - began, text, again)


@dataclass(frozen=True, slots=True)
class Row:
    """One layout over a whole session. `reused`: share of the prompt tokens sent; `final`: tokens of the last prompt.

    `turns`: evaluated tokens turn by turn. `again`: calls that were started again after a broken connection.
    """

    layout: str
    sent: int
    evaluated: int
    reused: float
    final: int
    seconds: float
    first_p50: float
    turns: tuple[int, ...]
    again: int


async def _session(
    model: OpenAIModel, layout: Layout, turns: Sequence[Turn]
) -> tuple[list[Call], list[Turn]]:
    """Run the session in one layout. Returns the calls, and the turns with the received replies."""
    calls: list[Call] = []
    played: list[Turn] = []
    for turn in turns:
        calls.append(await _call(model, layout([*played, turn])))
        played.append(replace(turn, reply=calls[-1].text))
    return calls, played


def _row(name: str, calls: Sequence[Call]) -> Row:
    sent, evaluated = sum(call.usage.prompt_tokens for call in calls), sum(call.evaluated for call in calls)
    return Row(
        layout=name,
        sent=sent,
        evaluated=evaluated,
        reused=1 - evaluated / sent,
        final=calls[-1].usage.prompt_tokens,
        seconds=sum(call.seconds for call in calls),
        first_p50=statistics.median(call.first for call in calls),
        turns=tuple(call.evaluated for call in calls),
        again=sum(call.again for call in calls),
    )


@dataclass(frozen=True, slots=True)
class Child:
    """The cost of a kind of child: prompt tokens and evaluated tokens, for one child and the caller's next turn."""

    kind: str
    prompt: float
    evaluated: float
    back: float


async def _children(turns: Sequence[Turn], count: int) -> list[Child]:
    """For each kind: run the caller's session so far, then `count` children. The caller continues after each."""
    found: list[Child] = []
    for kind, build in CHILDREN.items():
        async with _model() as model:
            calls, back = list[Call](), list[Call]()
            await _call(model, changes(turns))
            going = [*changes(turns), ChatMessage("assistant", turns[-1].reply)]
            for number in range(count):
                calls.append(await _call(model, build(number, turns)))
                going.append(ChatMessage("user", f"Message from your child: part {number + 1} is done."))
                back.append(await _call(model, going))
                going.append(ChatMessage("assistant", back[-1].text))
        found.append(
            Child(
                kind,
                statistics.mean(call.usage.prompt_tokens for call in calls),
                statistics.mean(call.evaluated for call in calls),
                statistics.mean(call.evaluated for call in back),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Product:
    """The product's own session, and the length that its last prompt would have with every whole block kept."""

    row: Row
    kept: int

    @property
    def length(self) -> float:
        """The length of its last prompt as a share of that length."""
        return self.row.final / self.kept

    def missed(self) -> list[str]:
        """The targets that it misses, as text."""
        wrong = []
        if self.row.reused < REUSED:
            wrong.append(f"{PRODUCT}: {self.row.reused:.1%} reused, at least {REUSED:.0%} wanted")
        if self.length > LENGTH:
            wrong.append(f"{PRODUCT}: {self.length:.0%} of the length of keeping all, {LENGTH:.0%} wanted")
        return wrong


async def _product(turns: int) -> Product:
    async with _model() as model:
        calls: list[Call] = []

        async def say(messages: Sequence[ChatMessage]) -> str:
            calls.append(await _call(model, messages))
            return calls[-1].text

        blocks = await play(say, turns)
        # The server's tokenizer counts how much longer the last prompt would be, without evaluating it.
        longer = sum([await _count(model, whole) - await _count(model, told) for told, whole in blocks])
    row = _row(PRODUCT, calls)
    return Product(row, row.final + longer)


async def _count(model: OpenAIModel, text: str) -> int:
    """The tokens of a text, counted by the server."""
    async with httpx.AsyncClient(trust_env=False, timeout=_PATIENCE) as client:
        address = f"{model.endpoint.removesuffix('/v1')}/tokenize"
        answer = await client.post(
            address, json={"content": text}, headers={"Authorization": f"Bearer {_KEY}"}
        )
    return len(answer.raise_for_status().json()["tokens"])


def _print(row: Row) -> None:
    print(
        f"| {row.layout} | {row.sent:,} | {row.evaluated:,} | {row.reused:.1%} | {row.final:,} | {row.seconds:.1f} "
        f"| {row.first_p50:.2f} s |",
        flush=True,
    )


async def _layouts(turns: int, names: Sequence[str]) -> tuple[list[Row], Product | None]:
    rows: list[Row] = []
    product = None
    print("| dynamic block | sent | evaluated | reused | last prompt | seconds | first token p50 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    if PRODUCT in names:
        product = await _product(turns)
        _print(product.row)
    for name in [one for one in LAYOUTS if one in names]:
        async with _model() as model:
            calls, _ = await _session(model, LAYOUTS[name], conversation(turns))
        rows.append(row := _row(name, calls))
        _print(row)
    if product is not None:
        print(
            f"\nThe product's last prompt is {product.length:.0%} of the {product.kept:,} tokens that it would have "
            "with the whole block kept at every turn."
        )
    return rows, product


async def _families(turns: int, count: int) -> list[Child]:
    played = [
        replace(turn, reply=f"That was file {number}.") for number, turn in enumerate(conversation(turns))
    ]
    children = await _children(played, count) if count else []
    if children:
        print("\n| child | prompt | evaluated | evaluated for the caller's next turn |\n|---|---|---|---|")
    for child in children:
        print(f"| {child.kind} | {child.prompt:,.0f} | {child.evaluated:,.0f} | {child.back:,.0f} |")
    return children


async def _static_tokens() -> Call:
    """The tokens of a prompt with only the static text and one word."""
    async with _model() as model:
        return await _call(model, [changes(conversation(1))[0], ChatMessage("user", "Hi")])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tail", description=__doc__)
    parser.add_argument("--turns", type=int, default=_FULL, help="turns of the session (default 30)")
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="only rows whose name contains one of these"
    )
    parser.add_argument("--children", type=int, default=5, help="children of each kind (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    download.fetch(LARGE, lambda progress: print(progress, flush=True))
    load = os.getloadavg()[0]
    names = [name for name in (PRODUCT, *LAYOUTS) if any(text in name for text in options.only)]
    rows, product = asyncio.run(_layouts(options.turns, names))
    static = asyncio.run(_static_tokens()).usage.prompt_tokens
    print(f"The static prompt has {static:,} tokens.")
    children = asyncio.run(_families(options.turns, options.children))
    missed = product.missed() if product is not None else []
    print(f"\nLoad of the machine before and after: {load:.1f}, {os.getloadavg()[0]:.1f}.")
    if product is not None:
        print("\n".join(missed) or f"{PRODUCT}: targets reached.")
    reused = [(row.layout, [("", 100 * row.reused)]) for row in ([product.row] if product else []) + rows]
    kept.chart(kept.Chart("Prompt tokens found in the cache", "", "% of those sent", reused, kind="bars"))
    kept.numbers({"layouts": [asdict(row) for row in rows], "product": asdict(product) if product else None})
    if options.json:
        data = {
            "turns": options.turns,
            "static": static,
            "load": [load, os.getloadavg()[0]],
            "product": asdict(product) if product is not None else None,
            "layouts": [asdict(row) for row in rows],
            "children": [asdict(child) for child in children],
        }
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 1 if missed and options.turns >= _FULL else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
