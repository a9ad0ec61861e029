"""What whoever looks after a server asks of it: whether it answers, whether it takes new work, and its figures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from iact.accounts.rights import Principal
from iact.web.server import WebServer
from tests.core.session.fakes import runtime
from tests.web.dialling import dial, get, http, run, send, until
from tests.web.fake import FakeRuntime
from tests.web.people import FakePeople, PlainModel, town

SECRET = "xyzzy of the root"
Samples = Mapping[tuple[str, tuple[str, ...]], float]


def samples(text: str) -> Samples:
    """What a scraper reads, by name and the values of its labels, in the order of these."""
    return {
        (one.name, tuple(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


async def figures(server: WebServer, token: str) -> tuple[Samples, str]:
    status, headers, body = await http(server, get(server, "/metrics", Authorization=f"Bearer {token}"))
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(body.decode()), body.decode()


async def talk(server: WebServer, token: str) -> str:
    """Say something, and read the answer; gives the session."""
    async with dial(server, Authorization=f"Bearer {token}") as client:
        await send(client, type="hello", session=None, id=0)
        await send(client, type="say", text=SECRET, id=1)
        said = (await until(client, type="ok", id=1))[-1]
        await until(client, type="record", kind="reply")
        return str(said["session"])


def test_probes_are_told_without_a_secret_and_nothing_else() -> None:
    async def test() -> None:
        fake = FakeRuntime()
        async with WebServer(fake) as server:
            for host in (f"127.0.0.1:{server.port}", "10.1.2.3:80"):
                for path in ("/healthz", "/readyz"):
                    status, headers, body = await http(server, get(server, path, Host=host))
                    assert (status, body) == (200, b"ok\n")
                    assert headers["cache-control"] == "no-store"
            crossed = get(server, "/readyz", Origin="http://evil.test")
            assert (await http(server, crossed))[0] == 403
            server.unavailable = "draining"
            assert (await http(server, get(server, "/readyz")))[::2] == (503, b"draining\n")
            assert (await http(server, get(server, "/healthz")))[0] == 200
        fake.why_unready = "sandbox"
        async with WebServer(fake) as server:
            assert (await http(server, get(server, "/readyz")))[::2] == (503, b"sandbox\n")

    run(test)


def test_who_takes_long_to_look_is_slow_and_who_ends_meanwhile_is_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked before the end is told of it, over the connection that they asked on."""

    begun = asyncio.Event()

    class Slow(FakeRuntime):
        async def unready(self) -> str:
            begun.set()
            await asyncio.Event().wait()
            return ""

    async def test() -> None:
        monkeypatch.setattr("iact.web.server._LOOKING", 0.05)
        async with WebServer(Slow()) as server:
            assert (await http(server, get(server, "/readyz")))[::2] == (503, b"slow\n")
            assert (await http(server, get(server, "/healthz")))[0] == 200
            begun.clear()
        monkeypatch.setattr("iact.web.server._LOOKING", 300)
        async with WebServer(Slow()) as server:
            asked = asyncio.ensure_future(http(server, get(server, "/readyz")))
            await begun.wait()
            await server.stop()
            assert (await asked)[::2] == (503, b"closing\n")

    run(test)


def test_a_runtime_says_what_keeps_it_from_work(tmp_path: Path) -> None:
    async def test() -> None:
        data = tmp_path / "data"
        data.mkdir()
        async with runtime(data, lambda asked: "", model=PlainModel("I see.")) as opened:
            assert await opened.unready() == ""
            data.rename(tmp_path / "gone")
            assert await opened.unready() == "data"
            (tmp_path / "gone").rename(data)

    run(test)


def test_figures_tell_what_happened_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with runtime(tmp_path, lambda asked: "", model=PlainModel(f"{SECRET}!")) as opened:
            async with WebServer(opened) as server:
                for headers in ({}, {"Authorization": "Bearer wrong"}):
                    assert (await http(server, get(server, "/metrics", **headers)))[0] == 401
                elsewhere = get(server, "/metrics", Host="10.1.2.3:80")
                assert (await http(server, elsewhere))[0] == 421
                before, _ = await figures(server, server.key)
                assert before["iact_sessions_open", ()] == 0
                session = await talk(server, server.key)
                now, text = await figures(server, server.key)
                here = get(server, "/metrics", Host="10.1.2.3:80", Authorization=f"Bearer {server.key}")
                assert (await http(server, here))[0] == 200
                known = await opened.open(session)
                assert now["iact_records_total", ()] == len(known.records())
            assert now["iact_sessions_open", ()] == 1
            assert now["iact_sessions_at_work", ()] == now["iact_questions_waiting", ()] == 0
            assert now["iact_modules_running", ()] == 0
            assert now["iact_model_turns_total", ("plain",)] == 1
            tokens = [now["iact_model_tokens_total", (one, "plain")] for one in ("read", "cached", "written")]
            assert tokens == [10, 0, 10]
            assert now["iact_model_call_seconds_count", ("plain",)] == 1
            assert now["iact_model_call_seconds_bucket", ("+Inf", "plain")] == 1
            assert now["iact_refusals_total", ("401", "http")] == 2
            assert now["process_open_fds", ()] > 0
            assert SECRET not in text
            assert session not in text

    run(test)


def test_with_accounts_figures_are_for_administrators_and_over_all_users(tmp_path: Path) -> None:
    async def test() -> None:
        tokens = {
            "ada": Principal(user="u1", name="ada", admin=True, key="ada"),
            "weak": Principal(user="u1", name="ada", admin=True, key="weak", scopes=frozenset()),
            "bob": Principal(user="u2", name="bob", key="bob"),
        }
        async with town(tmp_path, FakePeople(tokens), {}, idle=0.2) as place:
            session = await talk(place.server, "bob")
            while place.tenants.opened:  # noqa: ASYNC110 - a condition outside of this loop
                await asyncio.sleep(0.05)
            now, text = await figures(place.server, "ada")  # what bob did counts on when it is closed
            assert now["iact_model_turns_total", ("plain",)] == 1
            assert now["iact_sessions_open", ()] == 0
            assert not [one for one in (SECRET, session, "bob", "u2") if one in text]
            for who, wanted in (("bob", 404), ("weak", 404), ("nobody", 401)):
                asked = get(place.server, "/metrics", Authorization=f"Bearer {who}")
                assert (await http(place.server, asked))[0] == wanted
            assert (await http(place.server, get(place.server, "/healthz")))[0] == 200

    run(test)


@pytest.mark.parametrize("module", ["iact.web.server", "iact.commands.serve"])
def test_nothing_of_it_is_imported_before_somebody_asks(module: str) -> None:
    code = f"import sys, {module}; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
