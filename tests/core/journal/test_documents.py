"""The small files that all hosts of a store have: each finds what the others changed, and nothing that one did is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iact.cluster.cipher import HostCipher
from iact.core.errors import JournalError, StoreUnavailable
from iact.core.journal.documents import SharedDocuments
from tests.objects import Objects

KEY = bytes(range(32))


class Host:
    """One data directory."""

    def __init__(self, folder: Path, store: Objects, name: str, key: bytes = KEY) -> None:
        self.data = folder / name
        self.data.mkdir()
        self.documents = SharedDocuments(store, self.data, HostCipher(key))

    def write(self, name: str, content: object) -> None:
        file = self.data / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def read(self, name: str) -> object:
        return json.loads((self.data / name).read_text())

    def sync(self) -> list[str]:
        return self.documents.sync()


@pytest.fixture
def store() -> Objects:
    return Objects()


@pytest.fixture
def hosts(tmp_path: Path, store: Objects) -> tuple[Host, Host]:
    return Host(tmp_path, store, "a"), Host(tmp_path, store, "b")


def test_what_one_host_changes_the_others_have(hosts: tuple[Host, Host], store: Objects) -> None:
    a, b = hosts
    a.write("secrets.json", {"TOKEN": "not to be read"})
    a.write("policy.toml", "lockdown = false\n")
    a.write("plans/weekly.yaml", "steps: []\n")
    a.write("seal.key", "never leaves")
    assert a.sync() == []
    assert b.sync() == ["plans/weekly.yaml", "policy.toml", "secrets.json"]
    assert b.read("secrets.json") == {"TOKEN": "not to be read"}
    assert (b.data / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert not (b.data / "seal.key").exists()
    assert b.sync() == a.sync() == []
    b.write("policy.toml", "lockdown = true\n")
    b.sync()
    assert a.sync() == ["policy.toml"]
    assert (a.data / "policy.toml").read_text() == "lockdown = true\n"
    everything = b"".join(store.content.values())
    assert b"not to be read" not in everything
    assert b"lockdown" not in everything
    number = len(store.content)
    assert a.sync() == b.sync() == []
    assert len(store.content) == number  # a look at what nobody changed stores nothing


def test_both_changes_of_one_file_are_there(hosts: tuple[Host, Host]) -> None:
    """As two people allow hosts and approve modules on two machines, before either hears of the other."""
    a, b = hosts
    a.write("hosts.json", {"web": ["one.example:443", "two.example:443"], "shell": ["pypi.org:443"]})
    a.write("approvals.json", {"m": {"digest": "1", "functions": ["read"]}})
    a.sync()
    b.sync()
    a.write("hosts.json", {"web": ["one.example:443", "three.example:443"], "shell": ["pypi.org:443"]})
    b.write("hosts.json", {"web": ["one.example:443", "two.example:443", "four.example:443"]})
    a.write("approvals.json", {"m": {"digest": "2", "functions": ["read"]}, "new": {"digest": "9"}})
    b.write("approvals.json", {"m": {"digest": "1", "functions": ["read", "destroy"]}})
    a.sync()
    b.sync()
    a.sync()
    wanted = {"web": ["one.example:443", "three.example:443", "four.example:443"]}
    assert a.read("hosts.json") == b.read("hosts.json") == wanted
    # An approval is one host's whole: functions that were approved of one source never count for another.
    approvals = {"m": {"digest": "2", "functions": ["read"]}, "new": {"digest": "9"}}
    assert a.read("approvals.json") == b.read("approvals.json") == approvals


def test_of_two_at_the_same_moment_the_second_puts_both_together(
    hosts: tuple[Host, Host], store: Objects
) -> None:
    a, b = hosts
    a.write("secrets.json", {"A": "1"})
    b.write("secrets.json", {"B": "2"})

    def other_first(what: str, name: str) -> None:
        if what == "create":
            store.before = lambda what, name: None
            b.sync()

    store.before = other_first
    assert a.sync() == ["secrets.json"]
    b.sync()
    assert a.read("secrets.json") == b.read("secrets.json") == {"A": "1", "B": "2"}


def test_a_policy_that_both_wrote_is_for_a_person_to_put_together(hosts: tuple[Host, Host]) -> None:
    a, b = hosts
    a.write("policy.toml", "lockdown = false\n")
    a.sync()
    b.sync()
    a.write("policy.toml", "lockdown = true\n")
    b.write("policy.toml", "[levels]\npublish = 1.5\n")
    a.sync()
    b.sync()
    assert (b.data / "policy.toml").read_text() == "lockdown = true\n"
    [kept] = b.data.glob("policy.toml.kept-*")
    assert kept.read_text() == "[levels]\npublish = 1.5\n"


def test_who_has_not_the_key_can_forge_nothing(
    tmp_path: Path, store: Objects, hosts: tuple[Host, Host]
) -> None:
    a, b = hosts
    stranger = Host(tmp_path, store, "stranger", b"x" * 32)
    a.write("approvals.json", {"m": {"digest": "1"}})
    a.sync()
    with pytest.raises(JournalError, match="was not written by a host with this key"):
        stranger.sync()
    (genuine,) = store.content
    forged = genuine.replace("0000000001", "0000000002")
    # What is genuine under one name is nothing under another: no old approval comes back as a new one.
    for content in (b"{}", b"", store.content[genuine]):
        store.content[forged] = content
        with pytest.raises(JournalError, match="0000000002"):
            b.sync()
    assert not (b.data / "approvals.json").exists()


def test_what_was_changed_while_the_store_was_away_is_stored_later(
    hosts: tuple[Host, Host], store: Objects
) -> None:
    a, b = hosts
    a.write("hosts.json", {"web": ["one.example:443"]})
    lost = ["once"]
    store.lost = lambda what, name: bool(lost and lost.pop())
    with pytest.raises(StoreUnavailable):
        a.sync()
    assert a.sync() == []  # our own first attempt had succeeded
    assert b.sync() == ["hosts.json"]
    assert a.read("hosts.json") == b.read("hosts.json") == {"web": ["one.example:443"]}
