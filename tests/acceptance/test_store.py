"""Sessions in a store that several hosts share, by the command line: one begins on a host and continues on another."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.acceptance.product import NO_MODULES, ROOT, Product, until
from tests.endpoint import Endpoint


def host(endpoint: Endpoint, folder: Path, name: str, key: Path | None = None) -> Product:
    """The product on another machine: a data directory of its own, the same store, and the key of the first."""
    data = folder / name
    data.mkdir()
    if key is not None:
        (data / "seal.key").write_bytes(key.read_bytes())
        (data / "seal.key").chmod(0o600)
    store = f"file://{folder}/shared"
    return Product.at(data, endpoint, **NO_MODULES, IACT_STORE=store, IACT_HOST=name)


def test_a_session_is_gone_on_with_on_another_host(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two.", "Three."]}) as endpoint:
        a = host(endpoint, tmp_path, "a")
        first = a.ask("First")
        b = host(endpoint, tmp_path, "b", a.data / "seal.key")
        second = b.ask("Second", session=first.session)
        assert second.reply == "Two."
        # The first host has what it had, and fetches the rest when it goes on.
        assert second.journal.read_bytes().startswith(first.journal.read_bytes())
        assert a.ask("Third", session=first.session).reply == "Three."
        assert first.journal.read_bytes().startswith(second.journal.read_bytes())
        for command in (["replay", "--verify"], ["journal", "check"]):
            done = a.run(*command, first.session)
            assert done.status == 0, done
        tail = a.run("journal", "tail", first.session).stdout
        assert "epoch 2, on b" in tail
        assert "epoch 3, on a" in tail
        # A fork is in the store at once, whichever command makes it.
        fork = b.run("journal", "fork", first.session, "--at", "4").stdout.split()[-1]
        assert a.run("replay", fork).status == 2
        # A program without the store does not go on with what may be old here.
        alone = Product.at(a.data, endpoint, **NO_MODULES)
        told = alone.run("run", "--session", first.session, "Fourth").sentence
        assert f"is in the store file://{tmp_path}/shared" in told
        assert f"iact journal fork {first.session}" in told
        exported = b.run("journal", "export", first.session, "-o", f"{tmp_path}/one.md")
        assert exported.status == 0, exported
        assert (tmp_path / "one.md").read_bytes() == first.journal.read_bytes()
        stranger = host(endpoint, tmp_path, "c")
        told = stranger.run("run", "Hello").sentence
        assert "a different key than" in told
        assert "Copy that file" in told


def listing(product: Product) -> dict[str, dict[str, object]]:
    told = json.loads(product.run("session", "list", "--json").stdout)
    return {one["id"]: one for one in told}


def test_every_host_lists_the_sessions_of_all(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two.", "Three."]}) as endpoint:
        a = host(endpoint, tmp_path, "a")
        first = a.ask("Weigh the anchor").session
        b = host(endpoint, tmp_path, "b", a.data / "seal.key")
        (row,) = listing(b).values()
        assert (row["id"], row["title"], row["state"]) == (first, "Weigh the anchor", "idle")
        assert row["records"] == listing(a)[first]["records"]
        assert first in b.run("session", "search", "anchor").stdout
        # What needs the session's files says so.
        refused = b.run("session", "rename", first, "Anchors")
        assert refused.status == 2
        assert "was never open on this host" in refused.stderr
        assert a.run("session", "rename", first, "Anchors").status == 0
        assert listing(b)[first]["title"] == "Anchors"
        # Who has it open says what it is at; the other's older copy does not count.
        assert b.ask("Again", session=first).reply == "Two."
        assert listing(a)[first]["records"] == listing(b)[first]["records"]
        fork = b.run("journal", "fork", first, "--at", "4").stdout.split()[-1]
        assert "fork" in str(listing(a)[fork]["title"])
        assert b.run("session", "delete", first).status == 0
        told = b.run("run", "--session", first, "More").sentence
        assert f"is deleted. Restore it with: iact session restore {first}." in told, (
            "it is in the store, too"
        )
        assert set(listing(a)) == set(listing(b)) == {fork}
        assert b.run("session", "restore", first).status == 0
        assert set(listing(a)) == {first, fork}
        stored = b"".join(
            one.read_bytes() for one in (tmp_path / "shared" / "list").rglob("*") if one.is_file()
        )
        assert b"nchor" not in stored, "titles are for hosts alone"


def test_what_people_decided_on_one_host_counts_on_the_others(tmp_path: Path) -> None:
    with Endpoint({"/": ["One.", "Two."]}) as endpoint:
        a = host(endpoint, tmp_path, "a")
        session = a.ask("First").session
        b = host(endpoint, tmp_path, "b", a.data / "seal.key")
        assert a.run("secret", "set", "API_KEY", stdin="quite-a-secret\n").status == 0
        assert a.run("module", "allow", "web", "docs.example.org").status == 0
        assert a.run("session", "rename", session, "The first one").status == 0
        assert b.run("secret", "list").stdout.split() == ["API_KEY"]
        assert "docs.example.org" in b.run("module", "hosts").stdout
        assert b.ask("Second", session=session).reply == "Two."
        assert "The first one" in b.run("session", "list").stdout
        # What is withdrawn on one is withdrawn on a server that runs on another.
        with a.serving():
            assert b.run("secret", "remove", "API_KEY").status == 0
            until(lambda: a.run("secret", "list").stdout.split() == [], "the secret to be gone")
        stored = b"".join(one.read_bytes() for one in (tmp_path / "shared").rglob("*") if one.is_file())
        assert b"quite-a-secret" not in stored
        assert b"docs.example.org" not in stored


def test_a_session_that_is_deleted_for_good_is_gone_on_all_hosts(tmp_path: Path) -> None:
    with Endpoint({"/": ["One kumquat.", "Two.", "Three."]}) as endpoint:
        a = host(endpoint, tmp_path, "a")
        session = a.ask("What is a kumquat?").session
        b = host(endpoint, tmp_path, "b", a.data / "seal.key")
        assert b.ask("Again", session=session).reply == "Two."
        archive = tmp_path / "kept.tar.gz"
        assert b.run("session", "export", session, "-o", str(archive)).status == 0
        fork = b.run("journal", "fork", session, "--at", "4").stdout.split()[-1]
        # A program without the store would leave it there, and says so.
        alone = Product.at(b.data, endpoint, **NO_MODULES)
        told = alone.run("session", "delete", "--now", session).sentence
        assert f"is also in the store file://{tmp_path}/shared." in told
        assert a.ask("And again", session=session).reply == "Three."
        done = b.run("session", "delete", "--now", session)
        assert (done.status, done.stdout) == (0, f"{session} deleted for good\n")
        mine = [one for one in (tmp_path / "shared/sessions" / session).rglob("*") if one.is_file()]
        assert {one.read_bytes() for one in mine} == {b"", b"iact 1 deleted\n"}
        gone = f"The session {session} was deleted for good. Nothing of it is left, and its id will not be used again."
        c = host(endpoint, tmp_path, "c", a.data / "seal.key")
        for product in (a, b, c):  # which has a copy, deleted it, and never had it
            assert gone in product.run("run", "--session", session, "More").sentence
            assert gone in product.run("journal", "export", session).sentence
        assert gone in a.run("session", "rename", session, "Kumquats").sentence
        assert not list((tmp_path / "shared" / "purging").iterdir())
        assert not (c.data / "sessions" / session).exists()
        assert gone in c.run("session", "import", str(archive)).sentence
        assert not (c.data / "sessions" / session).exists()
        assert a.run("session", "tidy").status == 0
        assert not (a.data / "sessions" / session).exists()
        # What comes from it is a session by itself.
        assert set(listing(a)) == set(listing(c)) == {fork}
        assert "kumquat" in c.run("journal", "export", fork).stdout


def test_the_doctor_looks_at_store_and_hosts(tmp_path: Path) -> None:
    with Endpoint({}) as endpoint:
        a = host(endpoint, tmp_path, "a")

        def found(product: Product) -> dict[str, tuple[bool, str]]:
            told = json.loads(product.run("doctor", "--json").stdout)
            return {one["check"]: (one["ok"], one["detail"]) for one in told}

        assert found(a)["store"][0]
        assert "cluster" not in found(a)
        assert not list((tmp_path / "shared" / "doctor").iterdir()), "it leaves nothing there"
        clustered = replace(a, settings={**a.settings, "IACT_CLUSTER": "static"})
        assert found(clustered)["cluster"] == (False, "No host of the cluster is running.")
        with a.started("cluster", "host") as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            assert found(clustered)["cluster"] == (True, "running (static): a")
        keys = {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "k",
        }
        away = found(replace(a, settings={**a.settings, **keys, "IACT_STORE": "s3://bucket/iact"}))
        assert not away["store"][0]
        assert "s3://bucket/iact gave no answer" in away["store"][1]


def test_without_a_store_nothing_of_it_is_loaded() -> None:
    program = (
        "import sys, iact.commands.serve, iact.commands.run\n"
        "print(sorted({'iact.cluster', 'obstore', 'boto3', 'ray'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
