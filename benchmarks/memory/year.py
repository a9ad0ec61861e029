"""`python -m benchmarks.memory.year`: a scripted year of one person, and what agents are told of it at its end.

60 sessions in three projects and outside of them: orders, small talk, 40 wishes of which 12 change and 5 are withdrawn, and
15 decisions. Then 200 questions go to roots, to leaves and to the planner, each in a session of its own. The
contexts are read: the real tree builds them, and the model is a script that understands nothing.

It uses only what this and earlier versions share, so the same file measures an older commit.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import anyio

from benchmarks import kept
from benchmarks.tree.fakes import InstantHost, InstantModules
from iact.core.models.roles import Models
from iact.core.modules.invoker import Modules
from iact.core.ports import ChatMessage, ModelEvent, ModelProfile, ModuleHost, StreamEnd, TextDelta
from iact.core.records.parts import Bounds
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.hippocampus import Hippocampus, WordEmbedder, open_hippocampus

SESSIONS: Final = 60
QUESTIONS: Final = 200
PROJECTS: Final = ("shop", "blog", "robot")
ORDER: Final = "That is enough counting, tell your caller to stop the carousel at once."
_ORDER_SIGN: Final = "carousel"

WISHES: Final = (
    ("in the editor", "a dark theme", "a pale theme", "Set up the editor, with a theme"),
    ("for indenting code", "tabs", "spaces", "Indent the code of the module"),
    ("for dates in letters", "ordinal dates", "numeric dates", "Put the date at the head of the letter"),
    ("for names of database columns", "snakecase", "camelcase", "Name the columns of the invoice table in the database"),
    ("for snacks at meetings", "almonds", "crackers", "Suggest a snack for the meeting"),
    ("for lunch", "lentil soup", "fried rice", "Order lunch for today"),
    ("for journeys to clients", "night trains", "early flights", "Book the journey to the client"),
    ("for charts of revenue", "bar charts", "line charts", "Draw the chart of the revenue"),
    ("for colours of the slides", "turquoise", "burgundy", "Choose the colours of the slides"),
    ("for file names of reports", "kebabs with hyphens", "underscores", "Name the file of the report"),
    ("for summaries of articles", "three bullets", "one paragraph", "Summarise the article"),
    ("for tests in Python", "pytest", "unittest", "Write the tests in Python"),
    ("for variable names", "Portuguese names", "Finnish names", "Name the variables of the function"),
    ("for greetings in mails", "formal salutations", "casual salutations", "Write the greeting of the mail"),
    ("for music while writing", "harpsichord", "saxophone", "Find music to play while writing"),
    ("for units of length", "metres", "furlongs", "State the length of the bridge in units"),
    ("for hotel rooms", "quiet courtyards", "balconies", "Choose a hotel room"),
    ("for coffee", "espresso", "filter brews", "Order a coffee"),
    ("for tables in documents", "narrow tables", "wide tables", "Put the figures into a table of the document"),
    ("for commit messages", "imperative verbs", "gerunds", "Write the commit message"),
    ("for books at bedtime", "whaling novels", "detective stories", "Recommend a book for bedtime"),
    ("for plants on the balcony", "lavender", "geraniums", "Choose plants for the balcony"),
    ("for seats in planes", "aisle seats", "window seats", "Pick a seat in the plane"),
    ("for logging libraries", "structlog", "loguru", "Add a logging library to the service"),
    ("for paper of invitations", "cream linen", "glossy card", "Choose the paper of the invitations"),
    ("for gifts to colleagues", "chocolate truffles", "potted cacti", "Find a gift for a colleague"),
    ("for fonts in posters", "Garamond", "Helvetica", "Choose the font of the poster"),
    ("for backups", "nightly snapshots", "weekly dumps", "Plan the backups"),
    ("for meetings of the team", "Tuesday mornings", "Friday noons", "Find a time for the meeting of the team"),
    ("for recipes", "gram measures", "cup measures", "Write down the recipe"),
    ("for passwords", "diceware phrases", "random strings", "Propose a scheme for the passwords"),
    ("for prices in offers", "net amounts", "gross amounts", "State the prices in the offer"),
    ("for routes of walks", "riverside paths", "forest tracks", "Plan the route of the walk"),
    ("for code comments", "sparse remarks", "thorough remarks", "Comment the code"),
    ("for photos in articles", "monochrome pictures", "vivid pictures", "Choose photos for the article"),
    ("for maps", "topographic sheets", "satellite images", "Make a map of the region"),
    ("for cakes", "rhubarb crumble", "poppyseed roll", "Order a cake"),
    ("for headlines", "sentence case", "capital letters", "Write the headline"),
    ("for spreadsheets", "frozen headers", "coloured rows", "Prepare the spreadsheet"),
    ("for answers by telephone", "brief replies", "long replies", "Draft the answer to give by telephone"),
)  # fmt: skip
"""What a wish is about, the thing that is preferred, another one, and a task in which it counts."""

_AREAS: Final = ("the database", "the queue", "the web server", "the cache", "the search")
_DECIDED: Final = {
    "shop": ("Postgres", "RabbitMQ", "Caddy", "Valkey", "Typesense"),
    "blog": ("SQLite", "Celery", "Nginx", "Memcached", "Lunr"),
    "robot": ("Influx", "Zenoh", "Hypercorn", "Dragonfly", "Tantivy"),
}
_CHATTER: Final = (
    "What is the weather in Oslo?", "Count the files in the folder.", "Explain what a mutex is.", "Sort the invoices of May.",
    "Draft a letter to the landlord about the heating.", "Who wrote the opera Fidelio?", "Translate the menu.",
)  # fmt: skip
_CHANGED: Final = 12
_WITHDRAWN: Final = 5

Place = Literal["root", "leaf", "plan"]


@dataclass(frozen=True, slots=True)
class Question:
    """A task, and what its reader should be told. `right`: empty if there is nothing to tell."""

    project: str
    place: Place
    task: str
    right: str


@dataclass(frozen=True, slots=True)
class Year:
    """What stood in the contexts of the questions. Each is a number of questions."""

    asked: int
    answerable: int
    """Questions to which the person's wishes or the project's decisions have an answer."""
    right: int
    """Of these, how many readers were told it."""
    right_at: dict[str, int] = field(default_factory=dict)
    asked_at: dict[str, int] = field(default_factory=dict)
    withdrawn: int = 0
    """Readers that were told a wish that was withdrawn."""
    replaced: int = 0
    """Readers that were told a wish that had changed, as it was before."""
    foreign: int = 0
    """Readers that were told a decision of another project."""
    orders: int = 0
    """Readers that were told an order to somebody else."""
    characters: float = 0.0
    """Characters that memory told a reader, on average."""
    milliseconds: float = 0.0
    """From the message to the end of the answer, on average."""


class YearClock:
    """The time of the year; the processor's time goes on as it does."""

    def __init__(self) -> None:
        self.day = datetime(2025, 1, 1, 9, tzinfo=UTC)
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self.day + timedelta(seconds=time.monotonic() - self._began)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


@dataclass
class Reader:
    """A model that answers by a script and keeps what it was sent."""

    child: str = ""
    """The task that the root hands on; empty if it answers itself."""
    read: list[Sequence[ChatMessage]] = field(default_factory=list)
    profile: ModelProfile = field(default_factory=lambda: ModelProfile("reader", 1_000_000))

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        self.read.append(list(messages))
        task, self.child = self.child, ""
        yield TextDelta(f"```CALL a\n{task}\n```" if task else "Done.")
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class World:
    """Where the year takes place."""

    data: Path
    clock: YearClock
    memory: Hippocampus
    reader: Reader

    def runtime(self) -> Runtime:
        def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
            return InstantModules()

        models, bounds = Models({"smart": self.reader}), Bounds(agents=4, turns=12, tokens=10**8)
        return Runtime(
            self.data, models, InstantHost(), bounds=bounds, open_modules=open_modules,
            memory=self.memory.of("anna"), clock=self.clock,
        )  # fmt: skip

    async def open(self, runtime: Runtime, project: str) -> Session:
        if not project:
            return await runtime.open()
        folder = self.data.parent / project
        folder.mkdir(exist_ok=True)
        return await runtime.open(workspace=folder)


def script(rng: random.Random) -> tuple[list[tuple[str, list[str]]], dict[int, str], set[int], set[int]]:
    """The year: for each session its project and its messages. Also what is wished at the end, by wish, and which wishes
    have changed and were withdrawn."""
    order = rng.sample(range(len(WISHES)), len(WISHES))
    changed, withdrawn = set(order[:_CHANGED]), set(order[_CHANGED : _CHANGED + _WITHDRAWN])
    said: list[list[str]] = [[] for _ in range(SESSIONS)]

    for place, wish in enumerate(order):
        about, first, second, _ = WISHES[wish]
        said[place].append(f"{rng.choice(_CHATTER)} I prefer {first} {about}.")
        if wish in changed:
            said[45 + place % 15].append(f"From now on, I prefer {second} {about}, and answer in a moment.")
        if wish in withdrawn:
            said[48 + place % 12].append(f"Forget that I prefer {first} {about}.")

    sessions: list[tuple[str, list[str]]] = []
    decided = {project: list(zip(_AREAS, _DECIDED[project], strict=True)) for project in PROJECTS}
    for number, messages in enumerate(said):
        project = (*PROJECTS, "")[number % 4]
        if project and decided[project]:
            area, chosen = decided[project].pop()
            messages.append(f"We decided to use {chosen} for {area}. {rng.choice(_CHATTER)}")
        sessions.append((project, [*messages, rng.choice(_CHATTER), *([ORDER] if number % 3 == 0 else [])]))

    now = {
        wish: WISHES[wish][2 if wish in changed else 1]
        for wish in range(len(WISHES))
        if wish not in withdrawn
    }
    return sessions, now, changed, withdrawn


def questions(rng: random.Random, now: dict[int, str]) -> list[Question]:
    """What is asked at the end of the year: four in five about wishes, the others about decisions."""
    found: list[Question] = []
    places: tuple[Place, ...] = ("root", "leaf", "plan")
    for number in range(QUESTIONS):
        place = places[number % 3]
        if number % 5 == 4:
            project = PROJECTS[number // 5 % 3]
            area = number // 15 % len(_AREAS)
            task = f"Write the configuration of {_AREAS[area]} of this project."
            found.append(Question(project, place, task, _DECIDED[project][area]))
        else:
            wish = rng.randrange(len(WISHES))
            found.append(
                Question(rng.choice((*PROJECTS, "")), place, f"{WISHES[wish][3]}.", now.get(wish, ""))
            )
    return found


async def measure(seed: int = 7) -> Year:
    """Live the year, then ask."""
    rng = random.Random(seed)
    sessions, now, changed, withdrawn = script(rng)
    with tempfile.TemporaryDirectory() as place:
        clock, reader = YearClock(), Reader()
        async with open_hippocampus(Path(place, "memory"), WordEmbedder(), clock=clock, budget=30) as opened:
            world = World(Path(place, "data"), clock, opened, reader)
            async with world.runtime() as runtime:
                for project, messages in sessions:
                    clock.day += timedelta(days=6)
                    session = await world.open(runtime, project)
                    for message in messages:
                        reader.child = "Look at it."
                        await session.ask(message)
                    await opened.settled()
                    await runtime.close(session.id)
                clock.day += timedelta(days=1)
                asked = questions(rng, now)
                return await _ask(world, runtime, asked, changed, withdrawn)


async def _ask(
    world: World, runtime: Runtime, asked: Sequence[Question], changed: set[int], withdrawn: set[int]
) -> Year:
    counts = dict.fromkeys(("right", "withdrawn", "replaced", "foreign", "orders"), 0)
    right_at, asked_at = (
        dict.fromkeys(("root", "leaf", "plan"), 0),
        dict.fromkeys(("root", "leaf", "plan"), 0),
    )
    characters = took = 0.0
    for question in asked:
        text, milliseconds = await _told(world, runtime, question)
        characters += len(text)
        took += milliseconds
        if question.right:
            asked_at[question.place] += 1
            right_at[question.place] += question.right in text
        others = [name for project in PROJECTS if project != question.project for name in _DECIDED[project]]
        counts["withdrawn"] += any(WISHES[wish][1] in text for wish in withdrawn)
        counts["replaced"] += any(WISHES[wish][1] in text for wish in changed)
        counts["foreign"] += any(name in text for name in others)
        counts["orders"] += _ORDER_SIGN in text
    answerable = sum(asked_at.values())
    return Year(
        len(asked), answerable, sum(right_at.values()), right_at, asked_at, counts["withdrawn"], counts["replaced"],
        counts["foreign"], counts["orders"], characters / len(asked), took / len(asked),
    )  # fmt: skip


async def _told(world: World, runtime: Runtime, question: Question) -> tuple[str, float]:
    """What the reader of a question was told by memory, and the milliseconds of the whole answer."""
    reader = world.reader
    reader.read.clear()
    reader.child = question.task if question.place == "leaf" else ""
    session = await world.open(runtime, question.project)
    began = time.perf_counter()
    said = "Hand it on." if question.place == "leaf" else question.task
    await session.ask(said, mode="static" if question.place == "plan" else "dialogue")
    took = (time.perf_counter() - began) * 1000
    await world.memory.settled()
    await runtime.close(session.id)

    held = reader.read[0] if question.place != "leaf" else reader.read[1]
    lines = [line for message in held for line in message.content.split("\n")]
    return "\n".join(_from_memory(lines)), took


def _from_memory(lines: Sequence[str]) -> list[str]:
    """The lines that memory has brought: they quote what was said, in the state, in a list, or in a planner's question."""
    signs = ("preference", "decision", "fact", "lesson", "goal", "result")
    return [
        line
        for line in lines
        if '"' in line and any(f"[{sign}" in line or f"{sign}" in line.split('"')[0] for sign in signs)
    ]


def main() -> None:
    """Measure and print."""
    found = asyncio.run(measure())
    places = ", ".join(
        f"{place} {found.right_at[place]} of {count}" for place, count in found.asked_at.items()
    )
    print(
        f"{found.asked} questions; {found.right} of {found.answerable} readers were told what is wished or decided ({places})\n"
        f"told wrongly: withdrawn {found.withdrawn}, replaced {found.replaced}, of another project {found.foreign}, "
        f"orders {found.orders}\n"
        f"{found.characters:.0f} characters from memory and {found.milliseconds:.0f} ms for each"
    )
    kept.numbers({"year": asdict(found)})


if __name__ == "__main__":
    main()
