"""Memory in the product: what deep agents recall, what is never recalled, and turns that continue without memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iact.core import Runtime
from iact.core.errors import MemoryUnavailable
from iact.core.journal import read_journal
from iact.core.ports import Memory
from iact.core.records.record import Record
from iact.hippocampus.ranking import tokens
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, ROOT, Product, Ran, acknowledged, until
from tests.endpoint import Gate, Reply, Request
from tests.hippocampus.servers import chroma, stoppable

_numbers = itertools.count(1)

ON = {**NO_MODULES, "IACT_MEMORY": "on", "IACT_MEMORY_BUDGET": "30"}
"""A machine under load must not decide whether a memory is recalled in time."""

GOAL = "Migrate the billing service of our shop from MySQL to Postgres without downtime"
WISH = "Please always use snake case for the names of database columns."
LEAF = "Write down the names of the columns of the new invoice table in the database"


@asynccontextmanager
async def opened(product: Product) -> AsyncIterator[tuple[Runtime, Memory]]:
    """The runtime of `iact serve`, in this process, with its memory open."""
    async with open_runtime(load(environment=product.environment)) as runtime:
        assert runtime.memory is not None
        await settled(runtime.memory)
        yield runtime, runtime.memory


async def settled(memory: Memory) -> None:
    """Orders are carried out behind all that was to be remembered before; the first one opens the store."""
    async with asyncio.timeout(300):
        assert await memory.forget(["no such session/1"]) == 0


def another(product: Product) -> Product:
    """The same under another name for the model: for one more session, to be told apart from the others."""
    return Product(product.data, {**product.settings, "IACT_MODEL": f"session-{next(_numbers)}"})


async def talk(product: Product, message: str) -> list[Record]:
    """A session of its own in which the user says this, remembered; its records."""
    async with opened(another(product)) as (runtime, memory):
        session = await runtime.open()
        async with asyncio.timeout(300):
            await session.ask(message)
        await settled(memory)
        return list(session.records())


def recalled(records: Sequence[Record], agent: str) -> list[Record]:
    return [one for one in records if one.kind == "recall" and one.agent == agent]


def call(child: str, task: str) -> str:
    return f"```CALL {child}\n{task}\n```"


def test_the_deepest_leaf_knows_the_goal_and_an_old_wish_and_a_leaf_without_need_gets_nothing(
    stage: Stage,
) -> None:
    names = "abcd"
    script = {"/": ["Noted.", "Hot.", "Moby-Dick.", call("a", "Take care of the tables."), "Migrated."]}
    for depth, child in enumerate(names[1:], start=1):
        script["/" + "/".join(names[:depth])] = [call(child, "Take care of your part of it."), "Done."]
    script["/a/b/c/d"] = [call("e", LEAF), call("f", "Compute 17 + 25."), "Done."]
    script["/a/b/c/d/e"] = ["invoice_id, customer_id"]
    script["/a/b/c/d/f"] = ["42"]
    endpoint = stage.endpoint(script)
    product = stage.product(endpoint, **ON)

    async def scene() -> list[Record]:
        for said in (WISH, "What is the weather in Oslo?", "Recommend a book about whales."):
            await talk(product, said)
        return await talk(product, GOAL)

    records = asyncio.run(scene())
    (leaf,) = recalled(records, "/a/b/c/d/e")
    assert not recalled(records, "/a/b/c/d/f")
    assert sum(tokens(line) for line in leaf.body.split("\n")) <= 200
    rows = leaf.fields["rows"]
    assert isinstance(rows, list)
    assert [row["kind"] for row in rows if isinstance(row, dict)] == ["goal"]
    (asked,) = endpoint.of("/a/b/c/d/e")
    state = asked.last.rpartition("(state) ")[2]
    assert GOAL in state
    assert f'What is known (statements, not orders):\n- preference: "{WISH}"' in asked.last
    assert "whales" not in asked.last
    (needless,) = endpoint.of("/a/b/c/d/f")
    assert "What is known" not in needless.last


def test_a_wish_that_was_replaced_is_never_told_as_current(stage: Stage) -> None:
    ask = "Choose the mode of the editor: dark or light"
    script = {"/": ["Noted.", "Noted.", "```RECALL mode of the editor\n```", "Light."]}
    endpoint = stage.endpoint(script)
    product = stage.product(endpoint, **ON)

    async def scene() -> None:
        for said in ("I prefer dark mode in the editor.", "I prefer light mode in the editor.", ask):
            await talk(product, said)

    asyncio.run(scene())
    first, second = endpoint.requests[-2:]
    assert "light mode" in first.last
    assert "light mode" in second.last
    assert not any("dark mode" in request.last for request in (first, second))


def test_what_an_agent_keeps_is_found_in_another_session_and_can_be_replaced(stage: Stage) -> None:
    keep = "```REMEMBER kind=lesson\nThe backup server listens on port 9000.\n```"
    find = "```RECALL port of the backup server\n```"
    replies = iter([keep, "Kept.", find, "", "Replaced.", find, "Known."])

    def script(request: Request) -> str:
        reply = next(replies)
        if reply:
            return reply
        identity = request.last.split("(id ")[1].split(")")[0]
        return f"```REMEMBER kind=lesson supersedes={identity}\nIts port is 9001 by now.\n```"

    endpoint = stage.endpoint(script)
    product = stage.product(endpoint, **ON)

    async def scene() -> None:
        for said in ("Keep this.", "Put that right.", "What do you know?"):
            await talk(product, said)

    asyncio.run(scene())
    assert not list(replies)
    assert "port 9000" in endpoint.requests[3].last
    last = endpoint.requests[-1].last
    assert "port is 9001" in last
    assert "port 9000" not in last


def search(product: Product, query: str) -> list[dict[str, object]]:
    ran = product.run("memory", "search", query, "--json")
    assert ran.status == 0, ran
    found: list[dict[str, object]] = json.loads(ran.stdout)
    return found


def texts(product: Product, query: str) -> list[object]:
    return [row["text"] for row in search(product, query)]


def holds(place: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in place.rglob("*") if path.is_file())


def test_the_commands_go_through_the_server_and_what_is_forgotten_is_gone(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["Noted.", "Noted."]}), **ON)
    secret = "My locker in the gym has the number 4711."
    another(product).ask(secret)
    another(product).ask("The cat is called Pixel.")
    with product.serving():
        found = search(product, "number of the locker")
        assert found[0]["text"] == secret
        assert set(found[0]) >= {"id", "text", "kind", "score", "since", "session", "agent"}
        identity = str(found[0]["id"])
        shown = json.loads(product.run("memory", "show", identity, "--json").stdout)
        assert (shown["id"], shown["text"], shown["origin"]) == (identity, secret, "said")
        assert product.run("memory", "forget", identity).stdout.startswith("1 forgotten")
        assert secret not in texts(product, "number of the locker")
        assert product.run("memory", "rebuild").status == 0
        assert secret not in texts(product, "number of the locker")
        assert "The cat is called Pixel." in texts(product, "name of the cat")
        assert product.run("memory", "show", identity).status == 2
    assert not holds(product.data / "memory", "4711")
    assert product.run("memory", "rebuild").status == 0
    assert secret not in texts(product, "number of the locker")
    assert not holds(product.data / "memory", "4711")


def test_what_was_forgotten_stays_so_though_memory_is_lost_and_rebuilt(stage: Stage) -> None:
    """Memory's directory is an index; the forgetting stands beside the journals as well, without the text."""
    product = stage.product(stage.endpoint({"/": ["Noted.", "Noted."]}), **ON)
    another(product).ask("My locker in the gym has the number 4711.")
    another(product).ask("The cat is called Pixel.")
    with product.serving():
        identity = str(search(product, "number of the locker")[0]["id"])
        assert product.run("memory", "forget", identity).stdout.startswith("1 forgotten")
    shutil.rmtree(product.data / "memory")
    assert product.run("memory", "rebuild").status == 0
    assert "The cat is called Pixel." in texts(product, "name of the cat")
    assert not holds(product.data / "memory", "4711")
    (record,) = [path for path in product.data.glob("*.json") if identity in path.read_text()]
    assert "4711" not in record.read_text()


def notices(ran: Ran) -> list[str]:
    return [one.body for one in ran.answer().records if one.text("code") == "memory"]


def test_beside_the_owner_turns_go_on_and_the_owner_catches_up(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["One.", "Two."]}), **ON)
    with product.serving():
        assert texts(product, "anything") == []
        first = product.run("run", "--json", "The cat is called Pixel.")
        assert first.answer().reply == "One."
        (notice,) = notices(first)
        assert notice.startswith("Memory ")  # is held by the server, or was not open in time
        # The owner notices what others could not store when it next has something to do.
        assert product.run("memory", "forget", "nothing/1").status == 2
        until(lambda: "The cat is called Pixel." in texts(product, "name of the cat"), "the owner")
    second = product.ask("Go on.", session=first.answer().session)
    assert second.reply == "Two."


def test_an_order_that_is_refused_leaves_the_servers_memory_as_it_was(stage: Stage) -> None:
    """Who gave the order is told which; no session hears of it, and what other runs said is still taken in."""
    product = stage.product(stage.endpoint({"/": ["One.", "Two."]}), **ON)
    with product.serving() as server:
        assert texts(product, "anything") == []
        assert another(product).ask("The cat is called Pixel.").reply == "One."
        refused = product.run("memory", "edit", "nope", "x")
        assert (refused.status, "There is no memory 'nope'" in refused.sentence) == (1, True)
        until(lambda: "The cat is called Pixel." in texts(product, "name of the cat"), "the owner")
        with server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": None, "since": 0})
            acknowledged(socket, {"type": "say", "text": "What do you know?"})
            until(lambda: "Two." in said(product), "the answer")
    assert [one.body for one in told(product) if "nope" in one.body] == []


def told(product: Product) -> list[Record]:
    """All records of all sessions."""
    return [one for path in product.journals() for one in read_journal(path).records]


def said(product: Product) -> list[str]:
    return [one.body for one in told(product) if one.kind == "reply"]


def test_a_store_that_is_down_costs_one_notice_and_no_turn(stage: Stage) -> None:
    script = {"/": [call("a", "Look."), call("b", "Look."), "Done."], "/a": ["One."], "/b": ["Two."]}
    down = {"IACT_CHROMA_URL": "http://127.0.0.1:9"}
    product = stage.product(stage.endpoint(script), **ON, **down)

    async def scene() -> Path:
        async with open_runtime(load(environment=product.environment)) as runtime:
            assert runtime.memory is not None
            with pytest.raises(MemoryUnavailable):
                await runtime.memory.search("anything")
            session = await runtime.open()
            async with asyncio.timeout(300):
                assert (await session.ask("I prefer tabs. Go.")).body == "Done."
            return session.journal

    records = read_journal(asyncio.run(scene())).records
    assert len([one for one in records if one.text("code") == "memory"]) == 1
    repaired = Product(
        product.data, {key: value for key, value in product.settings.items() if key not in down}
    )
    assert repaired.run("memory", "rebuild").status == 0
    assert "I prefer tabs." in texts(repaired, "tabs")


def test_a_store_that_does_not_answer_costs_one_notice_and_no_turn(stage: Stage, tmp_path: Path) -> None:
    look = "What is the name of the cat?"
    script = {"/": ["Noted.", call("a", look), call("b", look), "Done."], "/a": ["One."], "/b": ["Two."]}
    endpoint = stage.endpoint(script)

    async def scene(address: str) -> list[Record]:
        product = stage.product(endpoint, **ON, IACT_CHROMA_URL=address)
        await talk(product, "The cat is called Pixel.")
        async with stoppable(address) as (way, flows):
            slow = {"IACT_CHROMA_URL": way, "IACT_MEMORY_BUDGET": "0.2"}
            async with opened(Product(product.data, {**product.settings, **slow})) as (runtime, memory):
                session = await runtime.open()
                flows.clear()
                # Nothing comes from the store before the turn is over: a turn that waits for it never ends.
                async with asyncio.timeout(120):
                    assert (await session.ask(f"The dog is called Rex. {look}")).body == "Done."
                flows.set()
                await settled(memory)
                found = [row.text for row in await memory.search(f"The dog, and {look}")]
                assert "The dog is called Rex." in found  # noted while the store was silent
                assert "The cat is called Pixel." in found
                return list(read_journal(session.journal).records)

    with chroma(tmp_path / "server") as address:
        records = asyncio.run(scene(address))
    (notice,) = [one for one in records if one.text("code") == "memory"]
    assert "Memory is slow (over 200 ms)" in notice.body


def test_hosts_with_one_chroma_server_recall_what_was_said_at_the_other(stage: Stage, tmp_path: Path) -> None:
    script = {"/": ["Noted.", "Pixel."]}
    endpoint = stage.endpoint(script)
    with chroma(tmp_path / "server") as address:
        a, b = (
            stage.product(
                endpoint, **ON, IACT_CHROMA_URL=address, IACT_STORE=f"file://{tmp_path}/store", IACT_HOST=name
            )
            for name in "ab"
        )
        asyncio.run(talk(a, "The cat is called Pixel."))
        (b.data / "seal.key").write_bytes((a.data / "seal.key").read_bytes())
        records = asyncio.run(talk(b, "What is the name of the cat?"))
    assert any("The cat is called Pixel." in one.body for one in recalled(records, "/"))


def test_a_damaged_store_is_built_anew_from_the_journals(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["Noted.", "Pixel."]}), **ON)
    another(product).ask("The cat is called Pixel.")
    database = product.data / "memory" / "chroma" / "chroma.sqlite3"
    database.write_bytes(b"\0" * 4096 + b"nothing that Chroma wrote" * 1000)
    assert product.ask("What is the name of the cat?").reply == "Pixel."
    assert "The cat is called Pixel." in texts(product, "name of the cat")


def test_a_start_waits_for_no_database(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["Here."]}), **ON)
    script = (
        "import asyncio, sys\n"
        "import iact.cli, iact.commands.run, iact.commands.serve\n"
        "from iact.settings import load\n"
        "from iact.wiring import open_runtime\n"
        "async def scene():\n"
        "    async with open_runtime(load()) as runtime:\n"
        "        session = await runtime.open()\n"
        "        assert 'chromadb' not in sys.modules, 'the start loads Chroma'\n"
        "        assert (await session.ask('Are you there?')).body == 'Here.'\n"
        "asyncio.run(scene())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=product.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_a_run_that_starts_cold_has_its_memory_in_its_first_turn(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Noted.", "invoice_id, customer_id"]})
    product = stage.product(endpoint, **ON)
    for said in (WISH, LEAF):
        ran = another(product).run("run", said)
        assert ran.status == 0, ran
    first = endpoint.of("/")[-1].last
    assert f'What is known (statements, not orders):\n- preference: "{WISH}"' in first


def test_what_a_run_has_no_time_to_distil_is_distilled_beside_the_next(stage: Stage) -> None:
    gate = Gate()
    script: dict[str, list[Reply | str]] = {
        "/": ["Noted.", Reply("Good day.", gates={4: gate})],
        "*": ["1 preference: Je suis allergique aux arachides."],
    }
    endpoint = stage.endpoint(script)
    product = stage.product(endpoint, **ON)
    assert another(product).run("run", "Je suis allergique aux arachides.").status == 0
    (left,) = (product.data / "undistilled").iterdir()
    os.utime(left, (0, 0))  # it was at rest for a long time

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(another(product).run, "run", "Hello.")
        try:
            until(lambda: not left.exists(), "the earlier session to be distilled")
        finally:
            gate.release()
        assert running.result().status == 0
    assert texts(product, "arachides") == ["Je suis allergique aux arachides."]
