"""What waits in a live directory, over the websocket: pages of it, one diff, counts, and what a person makes of it."""

from __future__ import annotations

from iact.core.gate.effects import Effect
from iact.core.ports import AppliedChange, FileChange, FileState
from iact.core.tree.live_folder import PendingChange
from iact.web.server import WebServer
from tests.web.dialling import dial, run, send, until
from tests.web.fake import FakeRuntime, FakeSession

FILE = FileState("file", 0o644, 5, "a" * 64)
PATCH = "--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"


def waiting() -> FakeSession:
    session = FakeSession("s")
    changes = [
        FileChange("a", "add", None, FILE),
        FileChange("b", "modify", FILE, FileState("file", 0o644, 6, "b" * 64), conflict=True),
        FileChange("c", "delete", FILE, None),
    ]
    for change in changes:
        effect = Effect(2 if change.kind != "add" else 1, "It does something.")
        session.effects.waiting[change.path] = PendingChange(
            change,
            effect,
            7,
            "impact",
            "The changes have impact 2, and the intent of /coder is 1.",
            (3,),
            ("/coder",),
            frozenset({"tool:web.fetch"}),
        )
    session.effects.diffs["b"] = PATCH
    session.append("say", body="Go.")
    return session


def test_what_waits_comes_in_pages_with_all_that_a_person_decides_by() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(waiting())) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await send(client, type="pending", start=0, count=2, id=1)
            page = (await until(client, type="ok", id=1))[-1]
            await send(client, type="pending", start=2, count=2, id=2)
            rest = (await until(client, type="ok", id=2))[-1]
            rows = page["list"]
            assert isinstance(rows, list)
            assert isinstance(rest["list"], list)
            assert [row["path"] for row in [*rows, *rest["list"]]] == ["a", "b", "c"]
            assert (page["total"], rows[0]["from"], rest["list"][0]["to"]) == (3, "c", "a")
            assert rows[1]["conflict"] is True
            # What adds a file waits with what deletes one, for the same reason.
            assert rows[0]["reason"] == rows[1]["reason"]
            assert {name: rows[1][name] for name in ("impact", "why", "held", "reason", "n", "agents", "labels")} == {
                "impact": 2, "why": "It does something.", "held": "impact", "reason": "Overwriting and deleting needs your OK.",
                "n": 7, "agents": ["/coder"], "labels": ["tool:web.fetch"],
            }  # fmt: skip

    run(test)


def test_a_diff_and_counts_are_given_for_what_waits() -> None:
    async def test() -> None:
        async with WebServer(FakeRuntime(waiting())) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await send(client, type="patch", path="b", id=1)
            shown = (await until(client, type="ok", id=1))[-1]
            assert (shown["text"], shown["added"], shown["removed"]) == (PATCH, 1, 1)
            await send(client, type="counts", paths=["a", "b", "gone"], id=2)
            counted = (await until(client, type="ok", id=2))[-1]
            assert counted["list"] == [
                {"path": "a", "added": None, "removed": None},
                {"path": "b", "added": 1, "removed": 1},
            ]
            await send(client, type="patch", path="gone", id=3)
            assert (await until(client, type="error", id=3))[-1]["code"] == "usage"

    run(test)


def test_what_a_person_decides_reaches_the_session_with_what_they_had_seen() -> None:
    async def test() -> None:
        session = waiting()
        seen = {path: session.effects.digest(path) for path in ("a", "b")}
        session.effects.left = (AppliedChange("b", "conflict", "Somebody changed it."),)
        async with WebServer(FakeRuntime(session)) as server, dial(server) as client:
            await send(client, type="hello", session="s", id=0)
            await until(client, type="ok", id=0)
            await send(client, type="apply", paths=["a", "b"], at=7, digests=seen, id=1)
            applied = (await until(client, type="ok", id=1))[-1]
            assert (applied["done"], applied["left"]) == (
                1, [{"path": "b", "outcome": "conflict", "why": "Somebody changed it."}],
            )  # fmt: skip
            await send(client, type="apply", paths=["b"], force=True, digests=seen, id=2)
            await until(client, type="ok", id=2)
            await send(client, type="drop", paths=None, at=9, id=3)
            await until(client, type="ok", id=3)
            assert session.effects.calls == [
                ("apply", ["a", "b"], False, 7), ("apply", ["b"], True, None), ("drop", None, False, 9),
            ]  # fmt: skip
            await send(client, type="apply", paths=[""], digests={}, id=4)
            assert (await until(client, type="error", id=4))[-1]["code"] == "invalid"

    run(test)
