"""One message, three readings: a multimodal model gets the picture, a text-only one the tag; seen on the wire."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.context.embeds import LARGEST, MOST, embedded, part
from iact.core.language.variables import Value
from iact.core.models.openai import ModelEndpoint, OpenAIModel
from iact.core.models.roles import Models
from iact.core.ports import JSON, Medium, ModelProfile
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import context, replay
from tests.core.session.fakes import FakeHost, FakeModules, TickingClock, World
from tests.endpoint import Endpoint, Request

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCRIPT = {
    "/": ["```CALL eye\nWhat is on ![the chart]($chart)?\n```", "```SHOW chart\n```", "A red dot."],
    "/eye": ["A red dot, as on ![it]($chart)."],
}


def play(data: Path, takes: tuple[Medium, ...], script: dict[str, list[str]]) -> tuple[list[Request], Path]:
    """A session in which the user hands over a chart and asks about it, against an endpoint that takes `takes`."""

    async def main(url: str) -> Path:
        profile = ModelProfile("m", 100_000, takes=takes)
        clock = TickingClock()
        model = OpenAIModel(
            ModelEndpoint(url=url, key=None), profile=profile, clock=clock, rng=random.Random(1)
        )
        async with Runtime(
            data,
            Models({"smart": model}),
            FakeHost(),
            clock=clock,
            open_modules=lambda *_: FakeModules(World()),
        ) as opened:
            session = await opened.open()
            await session.upload("chart.png", "image/png", PNG)
            await session.ask("What is on ![my chart]($chart)?")
            return session.journal

    with Endpoint(script) as endpoint:
        journal = asyncio.run(main(endpoint.url))
        endpoint.assert_used()
    replay(journal, verify=True)
    return endpoint.requests, journal


def contents(request: Request) -> list[JSON]:
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return [message["content"] for message in messages if isinstance(message, dict)]


def pictures(content: JSON) -> list[JSON]:
    return (
        [one for one in content if isinstance(one, dict) and one["type"] == "image_url"]
        if isinstance(content, list)
        else []
    )


def test_a_multimodal_model_sees_each_picture_once_and_where_it_was_shown(tmp_path: Path) -> None:
    requests, journal = play(tmp_path, ("image",), SCRIPT)
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    picture: JSON = {"type": "image_url", "image_url": {"url": url}}
    first, child, second, last = (contents(request) for request in requests)
    for content in (first[1], child[1]):
        assert isinstance(content, list)
        assert [one.get("type") for one in content if isinstance(one, dict)] == ["text", "text", "image_url"]
        assert content[1:] == [{"type": "text", "text": "$chart:"}, picture]
    assert "![the chart]($chart)" in str(child[1])
    assert [len(pictures(content)) for content in second] == [0, 1, 0, 0], (
        "the child's embed is known to its caller"
    )
    assert [len(pictures(content)) for content in last] == [0, 1, 0, 0, 0, 1], "SHOW shows it again"
    assert last[:2] == first
    assert "$chart (image/png, 70 B) stands behind this message." in str(last[-1])
    seen = context(journal, "/")
    assert [len(message.parts) for message in seen.messages] == [0, 1, 0, 0, 0, 1]
    assert seen.messages[1].parts[0][:2] == ("chart", "image/png")


def test_a_text_only_model_reads_a_tag_that_it_can_pass_on(tmp_path: Path) -> None:
    requests, _ = play(tmp_path, (), SCRIPT)
    assert all(isinstance(content, str) for request in requests for content in contents(request))
    child = requests[1].last
    assert "with $chart (image/png, 70 B)" in child
    assert "![the chart]($chart)" in child
    assert "$chart (image/png, 70 B) is not text. Your model takes no pictures" in requests[-1].last


def value(media: str, size: int = 10) -> Value:
    return Value("0" * 64, size, media, lambda: b"x")


@pytest.mark.parametrize(
    ("media", "takes", "taken"),
    [
        ("image/png", ("image",), True),
        ("image/PNG; x=1", ("image",), True),
        ("image/svg+xml", ("image",), False),
        ("image/png", ("audio",), False),
        ("image/png", (), False),
        ("audio/mpeg", ("image", "audio"), True),
        ("text/plain", ("image", "audio"), False),
    ],
)
def test_what_a_model_takes(media: str, takes: Sequence[Medium], taken: bool) -> None:
    assert (part("v", value(media), takes) is not None) is taken


IMAGES: tuple[Medium, ...] = ("image",)


def test_what_is_too_large_or_empty_stays_a_tag() -> None:
    assert part("v", value("image/png", LARGEST), IMAGES) is not None
    assert part("v", value("image/png", LARGEST + 1), IMAGES) is None
    assert part("v", value("image/png", 0), IMAGES) is None
    assert MOST > 1


def test_only_variables_are_embedded_and_each_once() -> None:
    text = "![a]($x) ![b](https://example.org/x.png) ![c](out/y.png) ![]($y) ![a again]($x) [link]($z) !($w)"
    assert embedded(text) == ["x", "y"]
