"""Runs one short session through each face, with a third-party client: python -m docs.sessions [NAME…]

The product is real; the model is scripted. In each session, a call needs approval, which is given through the face if
the face can ask. The messages between client and product are stored as `NAME/transcript.md`, the session as
`NAME/journal.md`. The clients are those of the acceptance tests, which test more of each face.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from inspect_ai.log import read_eval_log
from mcp_types import ElicitResult

from docs.sessions import tap
from docs.sessions.tap import Message, Tap, tapped
from docs.sessions.transcript import lines
from iact.core.ports import JSON
from iact.faces.otel.span import Span
from tests.acceptance import test_ag_ui, test_inspect, test_skills
from tests.acceptance.mcp_client import Asked, connected_by_http
from tests.acceptance.product import Product, Server
from tests.acceptance.talks import HttpFace, served
from tests.acceptance.test_acp_node import played
from tests.acceptance.test_clearance import typing
from tests.acceptance.test_tracing import collector
from tests.endpoint import Endpoint
from tests.node import FOLDER

HERE: Final = Path(__file__).parent
TASK: Final = "Write hello to a.txt."
WRITE: Final = "I write it.\n\n```files.write path=a.txt\nhello\n```"
POLICY: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["{}"]\n'

Play = Callable[[Product, Path], Awaitable[list[Message]]]


@dataclass(frozen=True, slots=True)
class Scene:
    """A session through one face. `client`: the program at the other end. `asks`: the function that needs approval."""

    title: str
    client: str
    guide: str
    about: str
    play: Play
    script: Mapping[str, Sequence[str]]
    asks: str = "files.write"


def _of_node(package: str) -> str:
    found = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["dependencies"][package]
    return f"`{package}` {found} (npm)"


def _of_python(package: str) -> str:
    return f"`{package}` {version(package)} (PyPI)"


# --- clients that speak JSON-RPC to a command --------------------------------------------------------


async def _in_editor(product: Product, folder: Path) -> list[Message]:
    log = folder / "log"
    between = [sys.executable, "-m", "docs.sessions.tap", str(log)]
    await asyncio.to_thread(played, product, folder / "project", "once", between)
    return tap.read(log)


# --- clients that speak HTTP to a server -------------------------------------------------------------


@contextmanager
def _at_faces(product: Product) -> Iterator[tuple[Tap, Server]]:
    with product.serving("serve", "--faces", "0") as server:
        assert server.process.stdout is not None
        with tapped(server.process.stdout.readline().split()[-1]) as tap:
            yield tap, server
        server.process.terminate()
        assert server.process.wait(300) == 0


def _by(face: HttpFace) -> Play:
    async def play(product: Product, folder: Path) -> list[Message]:
        with _at_faces(product) as (tap, server):
            talk = served(face, server, tap.url, server.key)
            await talk.say(TASK)
            assert talk.asked
            await talk.answer(allow=True)
        return tap.heard

    return play


async def _over_mcp(product: Product, folder: Path) -> list[Message]:
    yes = Asked(ElicitResult(action="accept", content={"allow": True}))
    with _at_faces(product) as (tap, server):
        async with connected_by_http(tap.url, server.key, answering=yes) as on:
            await on.client.call_tool("iact_ask", {"task": TASK})
            await on.client.list_resources()
        assert yes.seen
    return tap.heard


async def _front_end(product: Product, folder: Path) -> list[Message]:
    steps: list[dict[str, JSON]] = [{"say": TASK}, {"resume": {"allow": True}}]
    with _at_faces(product) as (tap, server):
        await asyncio.to_thread(test_ag_ui.client, tap.url, server.key, *steps)
    return tap.heard


# --- commands ----------------------------------------------------------------------------------------


def _ran(product: Product, *arguments: str) -> list[Message]:
    done = product.run(*arguments)
    assert done.status == 0, done
    shown = [one.replace(str(product.data.parent), "…") for one in (" ".join(arguments), done.stdout)]
    return [Message("→", f"iact {shown[0]}", None), *([Message("←", "", shown[1])] if shown[1] else [])]


def _approved(product: Product, task: str) -> list[Message]:
    """Run a task at a terminal, where a person answers its only question."""
    shown, said = typing(product, ["y"], task)
    question = shown[shown.index("/ asks to run") :]
    return [
        Message("→", f'iact run "{task}"', None),
        Message("←", "", question),
        Message("→", "y", None),
        Message("←", "", said),
    ]


async def _traced(product: Product, folder: Path) -> list[Message]:
    with collector() as told:
        sending = Product(product.data, {**product.settings, "OTEL_EXPORTER_OTLP_ENDPOINT": told.url})
        heard = await asyncio.to_thread(_approved, sending, TASK)
    by_parent: dict[str, list[Span]] = {}
    for one in sorted(told.spans, key=lambda span: span.start):
        by_parent.setdefault(one.parent_id, []).append(one)

    def below(parent: str, depth: int) -> Iterator[Message]:
        for one in by_parent.get(parent, ()):
            attributes: dict[str, JSON] = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in one.attributes.items()
            }
            yield Message("→", f"{'  ' * depth}{one.name}", attributes)
            for event in one.events:
                yield Message("→", f"{'  ' * depth}  * {event.name}", {**event.attributes})  # type: ignore[dict-item]
            yield from below(one.span_id, depth + 1)

    return [*heard, Message("→", "POST /v1/traces", f"{len(told.spans)} spans"), *below("", 1)]


async def _skilled(product: Product, folder: Path) -> list[Message]:
    # The journal contains this text, and its page would have a broken link.
    place = test_skills.skill(folder, test_skills.CARD.replace("[words](references/words.md)", "`words.md`"))
    command = [str(Path(sys.executable).with_name("agentskills")), "validate", str(place)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    checked = done.stdout.replace(str(folder), "…")
    return [
        Message("→", "skills-ref validate word-count", None),
        Message("←", "", checked),
        *await asyncio.to_thread(_ran, product, "skill", "add", str(place)),
        *await asyncio.to_thread(_approved, product, "How long is my story? One two three."),
    ]


async def _evaluated(product: Product, folder: Path) -> list[Message]:
    (folder / "task.py").write_text(ASKED_OF_NOBODY, encoding="utf-8")
    options = ["-S", "intent=1"]
    [sample] = (
        await asyncio.to_thread(test_inspect.evaluate, product, "task.py", *options, folder=folder)
    ).values()
    assert sample.scores is not None
    (score,) = sample.scores.values()
    out = folder / "session.eval"
    (journal,) = product.journals()
    written = await asyncio.to_thread(
        _ran, product, "journal", "inspect", journal.parent.name, "-o", str(out)
    )
    log = await asyncio.to_thread(read_eval_log, str(out))
    assert log.samples is not None
    (session,) = log.samples
    return [
        Message("→", "inspect eval task.py --solver iact/agent -S intent=1", None),
        *(Message("←", f"{one.role}:", one.text) for one in sample.messages),
        Message("←", "score:", score.model_dump(mode="json", include={"value", "answer"})),
        Message("←", "store:", {name: str(one) for name, one in sample.store.items() if not name.endswith("journal")}),
        *written,
        *(
            Message("←", f"{one.event} event", one.model_dump(mode="json", include={"type", "name", "function", "model", "source", "result", "call", "decision"}))
            for one in session.events
        ),
    ]  # fmt: skip


ASKED_OF_NOBODY: Final = f"""
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def written():
    return Task(dataset=[Sample(id="write", input="{TASK}", target="not allowed")], scorer=includes())
"""

_SKILLED: Final = {
    "/": [
        "```skill_word_count.read\n```",
        "```files.write path=a.txt\none two three\n```",
        '```skill_word_count.run script=scripts/count.py arguments="[\\"a.txt\\"]"\n```',
        "Three words.",
    ]
}
_WRITES: Final = {"/": [WRITE, "Done."]}
_ASKED: Final = "The call is put to the person through the face, who allows it."

SCENES: Final[Mapping[str, Scene]] = {
    "acp": Scene(
        "An editor", _of_node("@agentclientprotocol/sdk"), "editors.md",
        f"{_ASKED} Then the session is closed, refuses a prompt, and is loaded again.", _in_editor,
        {"/": ["I make it.\n\n```shell.run\ntouch made\n```", "Over."]}, "shell.run",
    ),
    "mcp": Scene("An MCP client", _of_python("mcp"), "mcp-server.md", _ASKED, _over_mcp, _WRITES),
    "responses": Scene("Responses", _of_python("openai"), "responses.md", _ASKED, _by("responses"), _WRITES),
    "chat": Scene("Chat completions", _of_python("openai"), "responses.md", _ASKED, _by("chat completions"), _WRITES),
    "a2a": Scene("An agent by A2A", _of_python("a2a-sdk"), "a2a.md", _ASKED, _by("A2A"), _WRITES),
    "ag-ui": Scene("A front end by AG-UI", _of_node("@ag-ui/client"), "ag-ui.md", _ASKED, _front_end, _WRITES),
    "otel": Scene(
        "A trace", _of_python("opentelemetry-proto"), "opentelemetry.md",
        "A collector can't be asked anything: the call is allowed at the terminal, and both are in the trace. The spans "
        "are shown as the collector decoded them, below their parents.", _traced, _WRITES,
    ),
    "inspect": Scene(
        "A task of Inspect's", _of_python("inspect-ai"), "inspect.md",
        "Inspect has nobody to ask, so what needs approval is denied, which its scorer was told to look for. Then the session "
        "becomes a log, and its events are shown as Inspect reads them.", _evaluated, {"/": [WRITE, "That is not allowed."]},
    ),
    "skills": Scene(
        "A skill", _of_python("skills-ref"), "skills.md",
        "A skill has no client that could ask: the call of its script is allowed at the terminal.", _skilled, _SKILLED,
        "skill_word_count.run",
    ),
}  # fmt: skip


async def play(name: str, place: Path) -> None:
    """Run one scene, and write its transcript and journal to a folder."""
    scene = SCENES[name]
    with tempfile.TemporaryDirectory(prefix="iact-") as made:
        folder = Path(made)
        data = folder / "data"
        data.mkdir()
        (data / "policy.toml").write_text(POLICY.format(scene.asks), encoding="utf-8")
        with Endpoint(scene.script) as endpoint:
            product = Product.at(data, endpoint)
            messages = await scene.play(product, folder)
        endpoint.assert_used()
        (journal,) = product.journals()
        session, told = journal.parent.name, product.run("replay", "--verify", str(journal))
        assert told.status == 0, told
        _keep(journal, place)
    (place / "transcript.md").write_text(_page(scene, session, messages), encoding="utf-8")


def _keep(journal: Path, place: Path) -> None:
    """Copy a journal with its blobs, replacing the earlier ones."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copyfile(journal, place / "journal.md")
    blobs = journal.parent / "blobs"
    if blobs.exists() and any(blobs.iterdir()):
        shutil.copytree(blobs, place / "blobs")


def _page(scene: Scene, session: str, messages: Sequence[Message]) -> str:
    said = "\n".join(lines(messages))
    return (
        f"# {scene.title}: one session\n\n"
        "<!-- Written by docs/sessions; run: python -m docs.sessions -->\n\n"
        f"At the other end is {scene.client}. {scene.about} [How to](../../how-to/{scene.guide}); "
        f"[the journal](journal.md) of the session {session}; [how this was made](../README.md).\n\n"
        f"```text\n{said}\n```\n"
    )


async def main() -> None:
    """Run the named scenes, or all of them."""
    for name in sys.argv[1:] or SCENES:
        await play(name, HERE / name)


if __name__ == "__main__":
    asyncio.run(main())
