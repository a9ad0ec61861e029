"""The database of accounts: created if it is missing, migrated, and readable only by its owner."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import insert, select

from iact.accounts.api_tokens import ApiTokens
from iact.accounts.attempts import Attempts
from iact.accounts.audit import AuditLog
from iact.accounts.database import Database, open_database
from iact.accounts.people import Actor, SessionGrant
from iact.accounts.rights import LinkView, Principal
from iact.accounts.schema import METADATA, attempts
from iact.accounts.sharing import Sharing
from iact.accounts.sign_ins import SignIns
from iact.accounts.users import Users
from iact.core.errors import UsageError


def test_the_migrations_lead_to_the_tables(database: Database) -> None:
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_what_was_written_is_there_whole_or_not_at_all(database: Database) -> None:
    row = {"subject": f"somebody {database.dialect}", "left": 1.0, "at": 1.0}

    def fails() -> None:
        with database.writing() as connection:
            connection.execute(insert(attempts).values(row))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    with database.writing() as connection:
        assert connection.execute(select(attempts).where(attempts.c.subject == row["subject"])).all() == []


def test_both_databases_keep_people_alike(database: Database) -> None:
    by, now = Actor("test"), [1000.0]

    def clock() -> float:
        return now[0]

    audit = AuditLog(database, clock)
    users, sign_ins = Users(database, audit, clock), SignIns(database, clock, 60.0)
    tokens, sharing = ApiTokens(database, audit, clock), Sharing(database, audit, clock, public=True)
    ada, bob = (users.add(name, by=by, groups=["ops"]) for name in ("Ada", "bob"))
    with pytest.raises(UsageError, match="already"):
        users.add("ADA", by=by)
    assert users.vouched("oidc:x s", "ada", ["told"], create=False, by=by) == replace(
        ada, groups=frozenset(("ops", "told"))
    )
    signed = sign_ins.start(ada.id)
    token = tokens.create(ada, "t", ("sessions:read",), days=1, by=by)
    link = sharing.create(ada, "s", LinkView(variables=frozenset(("v",))), days=1, public=False, by=by)
    sharing.give(SessionGrant(ada.id, "s", "ops", "steerer", of_group=True), by=by)
    assert sharing.follow(link.secret, bob, by=by) is not None
    who = Principal(user=bob.id)
    assert {one.role for one in sharing.shared_with(who, bob.groups)} == {"steerer", "reader"}
    reach = sharing.reach(who, bob.groups, "s")
    assert reach is not None
    assert (reach.role, reach.view) == ("steerer", None)
    now[0] += 61
    assert sign_ins.find(signed.secret) is None
    assert tokens.find(token.secret) is not None
    attempts_left = Attempts(database, clock)
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: attempts_left.take("ada", "198.51.100.1"), range(12)))
    assert waits.count(0) == 5, "no two count as one"
    users.remove("ada", by=by)
    assert (tokens.find(token.secret), sharing.reach(who, bob.groups, "s")) == (None, None)
    users.remove("bob", by=by)


def test_many_hosts_open_it_at_once(tmp_path: Path, postgres: str) -> None:
    def opened(url: str | None) -> str:
        one = open_database(tmp_path, url)
        one.close()
        return one.dialect

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(opened, [None, postgres] * 4)} == {"sqlite", "postgresql"}


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    opened = open_database(tmp_path)
    with opened.writing() as connection:
        connection.execute(insert(attempts).values(subject="a", left=1.0, at=1.0))
    modes = {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}
    opened.close()
    assert modes == {0o600}


def test_what_a_newer_version_wrote_is_left_alone(tmp_path: Path) -> None:
    opened = open_database(tmp_path)
    with opened.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    opened.close()
    with pytest.raises(UsageError, match="9999"):
        open_database(tmp_path)


@pytest.mark.parametrize("url", ["nonsense", "mysql://h/d"])
def test_another_kind_of_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="IACT_ACCOUNTS_URL"):
        open_database(tmp_path, url)
