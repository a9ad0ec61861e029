"""Whole sessions, with the real command, engine and memory: a deleted session leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import docker

from iact.sandbox import owner
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, acknowledged, until
from tests.acceptance.test_scenes import shell
from tests.core.stored.test_kept_sessions import bytes_of, holding

WORD = "quizzaltine"
"""A word that nothing else holds."""

ON = {"IACT_MEMORY": "on", "IACT_MEMORY_BUDGET": "30"}


def volumes_of(data: Path) -> list[str]:
    """Names of the engine's volumes that bear the label of a data directory."""
    client = docker.from_env()
    try:
        listed = client.api.volumes(filters={"label": f"{owner.OWNER}={owner.data_digest(data)}"})
        return [str(one["Name"]) for one in listed["Volumes"] or []]
    finally:
        client.close()


def listed(product: Product, *options: str) -> list[dict[str, object]]:
    ran = product.run("session", "list", "--json", *options)
    assert ran.status == 0, ran
    return list(json.loads(ran.stdout))


def found(product: Product, words: str) -> list[tuple[str, str]]:
    """The sessions that a search finds, each with the line."""
    rows = json.loads(product.run("session", "search", "--json", words).stdout)
    return [
        (row["id"], row["hit"]["before"] + row["hit"]["match"] + row["hit"]["after"] if row["hit"] else "")
        for row in rows
    ]


def remembered(product: Product) -> set[str]:
    """The sessions of which memory holds something about the word."""
    ran = product.run("memory", "search", "--json", f"the {WORD}")
    assert ran.status == 0, ran
    return {row["session"] for row in json.loads(ran.stdout) if WORD in row["text"].lower()}


def test_a_session_that_is_deleted_for_good_leaves_no_word_no_memory_and_no_container(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                shell(f"printf {WORD} > {WORD}.txt; seq 4000; echo {WORD.upper()}"),
                f"Written: {WORD}.",
            ]
        },
        by_turn=True,
    )
    product = stage.product(endpoint, **ON)
    with product.serving() as server:
        with server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": None, "since": 0})
            said = acknowledged(
                socket, {"type": "say", "text": f"I prefer my {WORD} warm. Write that down."}, within=180
            )
            session = str(said["session"])
            place = product.data / "sessions" / session
            until(lambda: f"Written: {WORD}." in (place / "journal.md").read_text(), "the answer", within=180)
        until(lambda: remembered(product) == {session}, "memory to hold it")
        assert [one["state"] for one in listed(product)] == ["idle"]
        assert product.run("session", "rename", session, f"About {WORD}").status == 0
        assert product.run("session", "pin", session).status == 0
        (shown,) = listed(product)
        assert (shown["title"], shown["pinned"]) == (f"About {WORD}", True)
        ((name, line),) = found(product, WORD[:7])
        assert name == session
        assert WORD in line.lower()
        assert any(WORD in path.name for path in holding(place / "workspace", WORD))
        assert product.containers()

        # Deleted: what runs for it ends, lists, searches and memory don't know it; all of it can be had back.
        assert product.run("session", "delete", session).stdout.startswith(f"{session} deleted")
        assert not product.containers()
        assert volumes_of(product.data) == []
        assert (listed(product), found(product, WORD), remembered(product)) == ([], [], set())
        refused = product.run("session", "rename", session, "x")
        assert f"iact session restore {session}" in refused.sentence
        (trash,) = listed(product, "--deleted")
        assert (trash["id"], trash["title"]) == (session, f"About {WORD}")
        assert product.run("session", "restore", session).status == 0
        assert [one["id"] for one in listed(product)] == [session]
        until(lambda: remembered(product) == {session}, "memory to hold it again")
        before = bytes_of(place)
        assert product.run("session", "delete", session).status == 0
        assert product.run("session", "restore", session).status == 0
        assert bytes_of(place) == before
        assert product.run("replay", session, "--verify").status == 0

        # For good: no byte is left, of what was said, printed, written, remembered or indexed.
        assert product.run("session", "delete", "--now", session).stdout.startswith(
            f"{session} deleted for good"
        )
        assert holding(product.data, WORD, session) == []
    assert holding(product.data, WORD, session) == []
    assert listed(product) == listed(product, "--deleted") == []
    assert volumes_of(product.data) == []
    ran = product.run("memory", "rebuild")
    assert ran.status == 0
    assert (remembered(product), holding(product.data, WORD, session)) == (set(), [])


def test_without_a_server_the_commands_do_the_same_and_take_a_session_to_another_place(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Noted.", "Noted again."]})
    product = stage.product(endpoint, **NO_MODULES, IACT_MEMORY="on", IACT_MEMORY_BUDGET="30")
    session = product.ask(f"I prefer my {WORD} warm.").session
    assert remembered(product) == {session}
    archive = product.data.parent / "it.tar.gz"
    assert product.run("session", "export", session, "-o", str(archive)).status == 0

    # Memory is off now; what it held of the session goes all the same.
    quiet = Product(product.data, {**product.settings, "IACT_MEMORY": "off"})
    assert quiet.run("session", "delete", session).status == 0
    assert remembered(product) == set()
    assert quiet.run("session", "delete", "--now", session).status == 0
    assert holding(product.data, WORD, session) == []
    assert "There is no deleted session" in quiet.run("session", "restore", session).sentence

    # Back home it is ours and goes on; elsewhere it is foreign.
    back = product.run("session", "import", str(archive))
    assert (back.status, back.stdout.strip(), back.stderr) == (0, session, "")
    assert product.ask("And now?", session=session).reply == "Noted again."
    other = stage.product(endpoint, **NO_MODULES)
    taken = other.run("session", "import", "--json", str(archive))
    assert json.loads(taken.stdout)["foreign"] is True
    assert "iact session adopt" in other.run("run", "--session", session, "And now?").stderr

    # What is kept no longer goes by itself, and is emptied from the trash in its time.
    (product.data / "iact.toml").write_text("[sessions]\nkeep_days = 0.0000001\ntrash_days = 0\n")
    assert product.run("session", "tidy").stdout.split() == [session]
    assert holding(product.data, WORD, session) == []
