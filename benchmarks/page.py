"""Writes the report from the results in `docs/benchmarks/`: `docs/benchmarks.md`, its charts, and the few
figures in the README.

Nothing is measured here, so the page can be written again at any time. A test checks that it matches the results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.kept import Chart
from benchmarks.svg import draw

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
README: Final = ROOT / "README.md"
FOLDER: Final = ROOT / "docs" / "benchmarks"
_BEGIN, _END = "<!-- from docs/benchmarks -->", "<!-- end -->"


@dataclass(frozen=True, slots=True)
class Part:
    """A benchmark's section of the report. `seconds`: its time limit. `why`: the text after its figures."""

    title: str
    about: str
    arguments: tuple[str, ...] = ()
    seconds: float = 300
    why: str = ""


_PEERS_WHY: Final = """\
Reasons, and where iact is slower:

- **A step.** All others call the OpenAI client through its own method, which walks through every field of every \
message by its type at each request, as the plain loop shows. iact sends a finished body; since these \
figures were taken, it uses [its own transport](design/transport.md). [Another page](measurements/cost.md) has the cost of \
the frameworks without any client.
- **Stored.** A list of messages holds what was said and no more; those of AutoGen, pydantic-ai and smolagents are written \
when the run has ended, and are lost if the process ends before that. LangGraph stores the whole state at each step. iact \
stores each call's intent and outcome, origins, digests, times and usage, on disk before anything acts on them.
- **Resuming.** iact reads the journal, checks its chain of digests and folds it into the tree before it answers; \
the others read a list of messages.
- **Child agents.** AutoGen's tool makes an object, runs it once and forgets it. Each child of iact leaves durable \
records, has its own budget and can be called again, even after a restart. The makespan is wall-clock time.
- **Memory.** Most of it is the connection to the endpoint, as the plain loop shows; iact has [a different one](design/transport.md) \
since then. An agent of iact also has a journal, budgets, variables and a place in the tree, and can be asked again.
- **Prompts.** iact fences incoming text, so that it can't pass for anything else; this makes the additional bytes of \
a request. Its children share one static prompt, which is why so much of their prompts is in the cache.
- **As shipped.** Every piece of the stream is an event, every call goes over gRPC into a container, and memory is \
asked at every turn. The bytes are those of the journal, of the workspace's versions and of memory's store."""


APART: Final = frozenset(
    {
        "agentdyn",
        "board",
        "contexts",
        "ends",
        "everyday",
        "house",
        "language",
        "loop",
        "shell",
        "start",
        "worfbench",
    }
)
"""Benchmarks that need what not every checkout has, such as recordings, the history, or a model's file.
Each has its own page in docs/measurements."""

PARTS: Final[Mapping[str, Part]] = {
    "peers": Part(
        "Side by side with other frameworks",
        "Every framework speaks to the same scripted endpoint over HTTP and does the same work, in its own process and "
        "environment, in the way that its documentation recommends. iact always writes its durable journal. "
        "Times are processor time of all threads of the framework's process.",
        seconds=1200,
        why=_PEERS_WHY,
    ),
    "tree": Part(
        "The tree and its journal",
        "In one process, with a model that answers at once: what the runtime itself costs, and how the cost grows. "
        "[Reasons](measurements/cost.md).",
        ("--peers", "--rounds", "2"),
        seconds=420,
    ),
    "aims": Part(
        "A child agent, and what a step stores",
        "iact now and at the last commit before the second round of measurements, AutoGen and the OpenAI Agents SDK, in turns "
        "in one run; and where the time and the bytes go. [Reasons](measurements/cost.md).",
        seconds=900,
    ),
    "plan": Part(
        "Plans",
        "Scheduler overhead, makespan and fan-out, compared with a bare loop over asyncio and with LangGraph. "
        "[Plans](topics/plans.md).",
        ("--peers", "--rounds", "3"),
    ),
    "ways": Part(
        "Ways of working",
        "The same three tasks in a dialogue and in each mode of a plan, through `iact run` and real containers. The model is "
        "scripted: its answers depend on its input, and come after 0.15 s with 200 tokens a second. "
        "[Plans](topics/plans.md).",
        seconds=600,
    ),
    "parallel": Part(
        "Parallel steps through real modules",
        "Plans whose steps are scripts in the shell's container, and one whose steps are eight agents, through the "
        "command line and real containers; from the end of the step that all others wait for to the end of the last step. "
        "[Plans](topics/plans.md).",
        ("--rounds", "3"),
        seconds=300,
    ),
    "latency": Part(
        "Time and tokens by way of working",
        "How the cost of a request grows with its calls, for a dialogue, plans and LangGraph. The model is simulated. "
        "[How to read it](measurements/latency.md).",
        ("--peers",),
    ),
    "routing": Part(
        "What auto chooses",
        "120 requests in six languages, written before the router: classified by a person, by the form of the text alone, and "
        "by the embedded model. [Plans](topics/plans.md).",
        ("--model",),
        seconds=900,
    ),
    "modules": Part(
        "Modules",
        "Calls, starts and artifacts in real containers. [What a module costs](measurements/modules-cost.md).",
        ("--rounds", "5"),
    ),
    "faces": Part(
        "Unused faces",
        "`iact --version` and `iact serve` with the packages of all faces hidden, with the packages installed but unused, with "
        "`--faces`, and after one request to each of its faces; in turns, medians. Times are processor time. "
        "[What faces cost](measurements/faces.md).",
        ("--rounds", "3"),
        seconds=600,
    ),
    "alone": Part(
        "Servers without accounts",
        "`iact serve` with one user, at a commit before accounts and now: the start, a message, memory, modules. "
        "[What accounts cost a single user](measurements/alone.md).",
        seconds=600,
    ),
    "days": Part(
        "A server that runs for long",
        "10,000 sessions of 50 people in a day of virtual time, each used once: what the server takes at each hour. "
        "[How it works](how-to/operate.md#what-runs-for-long).",
        seconds=3600,
    ),
    "live": Part(
        "Live directories",
        "The cost of the overlay through which modules see a directory of the user's. "
        "[How it works](design/live-directories.md).",
        seconds=600,
    ),
    "beside": Part(
        "Viewers and workers compared with one shared instance",
        "A read-only call, a writing call, a first call and the memory of a session, at the last commit before read-only "
        "calls got a separate instance, and now; from the end of a turn to the outcome of its call, through the whole "
        "product with a scripted model.",
        ("--rounds", "3"),
        seconds=900,
        why="In a live directory the overlay is refreshed before each call to show what the user changed meanwhile, and a "
        "write is examined and applied after its intent is durable. A session there starts cold, since the pool's instances "
        "have their own folder: viewer and worker start while a real model would think, which this one does not. Memory as "
        "counted by the engine includes pages that both processes read from the same files twice; PSS counts them once.",
    ),
    "earlier": Part(
        "The cost of the runtime compared with an earlier commit",
        "Processor time of a step, a child, parallel branches, and of verifying and resuming a journal, at the "
        "last commit before an agent was split into parts and its context built once per turn, and now.",
        seconds=900,
    ),
    "gate": Part("The gate", "The cost of a decision. [The gate](topics/gate.md)."),
    "scanner": Part("The scanner", "How fast a reply is read, compared with markdown-it-py."),
    "rendering": Part(
        "One client's text beside another's answer",
        "How long a second client of the page waits while a first client has pathological Markdown of 90 kB rendered, one "
        "text after the other.",
    ),
    "opening": Part(
        "Opening a long session",
        "30,000 records, the whole server and a browser: from the choice of the session to the frame that shows its "
        "newest messages in full. Cold: the server reads the journal for the first time.",
    ),
    "shared": Part(
        "Journals that machines share",
        "A step that changes something, with its journal in the data directory, in a directory as a store, and in S3. "
        "[How it works](topics/journal.md#on-several-hosts).",
    ),
    "hosts": Part(
        "Hosts and a gateway",
        "Real hosts that share a store, a gateway and users at websockets, with a scripted model: the cost of a message through "
        "the gateway and of an open session, and the gain from more hosts on one machine. "
        "[How it works](how-to/machines.md#hosts-and-a-gateway).",
    ),
    "streams": Part(
        "Many agents that write at once",
        "Frames a second of the page, while agents write 320 characters a second each. The session is simulated; server, "
        "websocket and page are real.",
    ),
    "listing": Part(
        "Many sessions",
        "10,000 sessions, the whole server, and a client: from a request for the list, or for a search in all text, to "
        "its complete answer.",
    ),
    "memory": Part(
        "Memory",
        "What recall finds and what it costs. [How it was measured](measurements/memory.md).",
        ("--cost", "20000", "--asks", "300"),
        seconds=900,
    ),
    "tail": Part(
        "Contexts and caches",
        "Prompt tokens that a real inference engine had to evaluate, by the place of the changing part of a context. "
        "[How it was measured](measurements/tail.md).",
        ("--only", "the product", "--children", "2"),
        seconds=600,
    ),
    "agentdojo": Part(
        "AgentDojo",
        "What the gate lets through in the whole suite, with a planner that does everything the attacker wants. "
        "[The gate and its threat model](threat-model.md).",
        seconds=480,
    ),
    "seven_groups": Part(
        "The seven-group experiment",
        "The gain of each step from a loop to a plan that repairs itself. The model is simulated. "
        "[How to read it](measurements/seven-groups.md).",
    ),
}


@dataclass
class Kept:
    """The results of one run of a benchmark. `status`: exit status of its process. `wrong`: why it broke, if it did."""

    name: str
    at: str
    seconds: int
    machine: str
    load: Sequence[float]
    status: int
    wrong: str
    text: str
    charts: Sequence[Mapping[str, object]] = ()
    numbers: Mapping[str, object] = field(default_factory=dict)


def keep(made: Kept) -> None:
    """Store the results of a benchmark. Replaces its earlier results."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{made.name}.json").write_text(
        json.dumps(asdict(made), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def kept() -> dict[str, Kept]:
    """All stored results, in the order of the report."""
    files = {name: FOLDER / f"{name}.json" for name in PARTS}
    return {
        name: Kept(**json.loads(file.read_text(encoding="utf-8")))
        for name, file in files.items()
        if file.exists()
    }


def write() -> None:
    """Write the page, its charts and the README's figures from the stored results."""
    found = kept()
    for path, text in files(found).items():
        path.write_text(text, encoding="utf-8")
    if "peers" in found:
        README.write_text(with_figures(README.read_text(encoding="utf-8"), found), encoding="utf-8")


def files(found: Mapping[str, Kept]) -> dict[Path, str]:
    """The page and its charts, by path."""
    made = {PAGE: render(found)}
    for name, one in found.items():
        for number, chart in enumerate(one.charts):
            made[FOLDER / f"{name}-{number}.svg"] = draw(Chart(**chart))  # type: ignore[arg-type]
    return made


def render(found: Mapping[str, Kept]) -> str:
    """The page."""
    machines = list(dict.fromkeys(one.machine for one in found.values()))
    parts = [_part(PARTS[name], one, machines) for name, one in found.items()]
    contents = " · ".join(f"[{PARTS[name].title}](#{_anchor(PARTS[name].title)})" for name in found)
    where = "\n".join(f"{at + 1}. {machine}" for at, machine in enumerate(machines))
    return (
        "# What was measured\n\n"
        "This page is written by `make bench` (`python -m benchmarks`), which runs every comparison on one machine; "
        "`python -m benchmarks NAME` renews one part. The data of each run is in "
        "`docs/benchmarks/`. Ratios within a table can be compared; absolute times depend on the machine:\n\n"
        f"{where}\n\n{contents}\n\n" + "\n".join(parts)
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _part(part: Part, one: Kept, machines: Sequence[str]) -> str:
    command = " ".join(["python -m", f"benchmarks.{one.name}", *(_quoted(word) for word in part.arguments)])
    which = f", machine {machines.index(one.machine) + 1}" if len(machines) > 1 else ""
    when = (
        f"Measured on {one.at[:10]} with `{command}` in {one.seconds} s{which}; "
        f"load of the machine {one.load[0]} before, {one.load[1]} after."
    )
    pieces = [f"## {part.title}", f"{part.about} {when}"]
    if one.wrong:
        pieces.append(f"**This part did not finish:** {one.wrong}")
    pieces.append(markdown(one.text))
    for number, chart in enumerate(one.charts):
        pieces.append(f"![{chart['title']}](benchmarks/{one.name}-{number}.svg)")
    pieces.append(part.why)
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def markdown(text: str) -> str:
    """A benchmark's output as Markdown: tables unchanged, aligned columns preformatted, other lines as paragraphs."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        kind = _kind(line)
        if kind in ("table", "columns") and blocks and blocks[-1][0] == kind:
            blocks[-1][1].append(line)
        elif kind != "none":
            blocks.append((kind, [line]))
    return "\n\n".join(
        "\n".join(["```text", *lines, "```"] if kind == "columns" else lines) for kind, lines in blocks
    )


def _kind(line: str) -> str:
    if not line.strip() or _is_json(line):  # JSON is for programs; its numbers are stored separately
        return "none"
    if line.startswith("|"):
        return "table"
    return "columns" if re.search(r"\S {2,}\S|^ {2,}\S", line) else "text"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def with_figures(readme: str, found: Mapping[str, Kept]) -> str:
    """The README with the most important figures between their marks."""
    before, begun, rest = readme.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise ValueError("the README has no place for figures")
    return f"{before}{_BEGIN}\n{figures(found['peers'])}\n{_END}{after}"


_SHOWN: Final[Sequence[tuple[str, str]]] = (
    ("ours", "**iact**, every step durable"),
    ("openai_agents", "OpenAI Agents SDK"),
    ("pydantic_ai", "pydantic-ai"),
    ("autogen", "AutoGen"),
    ("langgraph", "LangGraph"),
    ("smolagents", "smolagents"),
)


def figures(peers: Kept) -> str:
    """The table for the README."""
    found = peers.numbers["found"]
    assert isinstance(found, dict)
    columns: Sequence[tuple[str, str, str, Callable[[float], str]]] = (
        ("a step after 200 others", "steps 200", "at_200", lambda ms: f"{ms:.1f} ms"),
        ("stored per step", "stored 200", "bytes", lambda size: f"{size / 1000:.1f} kB"),
        ("a level of nesting", "down 8", "cpu_ms", lambda ms: f"{ms:.1f} ms"),
    )
    columns = [one for one in columns if any(_value(found, name, one[1], one[2]) for name, _ in _SHOWN)]
    rows = ["| | " + " | ".join(head for head, *_ in columns) + " |", "|" + "---|" * (len(columns) + 1)]
    for name, title in _SHOWN:
        cells = []
        for _, job, which, told in columns:
            value = _value(found, name, job, which)
            cells.append("–" if value is None else told(value))
        rows.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _value(
    found: Mapping[str, Mapping[str, Mapping[str, float]]], name: str, job: str, which: str
) -> float | None:
    return found.get(name, {}).get(job, {}).get(which)
