"""The catalogue as people see it, and what they approve in it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ext_modules.sdk import Module
from iact.core.errors import ModuleFault, UsageError
from iact.core.modules.approval import Approvals
from iact.core.modules.manifest import Manifest
from iact.core.ports import CatalogueEntry, Origin
from iact.core.stored.catalogue import describe_once
from iact.core.views.known_modules import approve, known
from tests.core.modules.local_host import LocalHost

MANIFEST = Manifest.model_validate(
    {
        "name": "mail",
        "version": "3",
        "purpose": "Sends.",
        "functions": [
            {"name": name, "summary": "s", "documentation": "", "schema_text": '{"type":"object"}', "impact": impact}
            for name, impact in (("read", 0), ("send", 2))
        ],
    }
)  # fmt: skip

DIGEST = "0123456789abcdef" * 4
CHANGED = "It has changed since you looked; look again."


def entry(
    name: str = "mail", *, origin: Origin = "user", digest: str = DIGEST, manifest: bytes | None = None
) -> CatalogueEntry:
    return CatalogueEntry(name, digest, origin, "Sends mail.", manifest or MANIFEST.to_proto())


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals.load(tmp_path / "approved.json")


def test_all_of_a_shipped_module_is_approved_and_of_others_what_a_person_approved(
    approvals: Approvals,
) -> None:
    assert known(entry(origin="shipped"), approvals).approved == {"read", "send"}
    assert known(entry(), approvals).approved == set()
    approvals.approve("mail", DIGEST, ["read"])
    assert known(entry(), approvals).approved == {"read"}
    assert known(entry(digest="abc124"), approvals).approved == set(), "it is another version"


def test_what_people_and_programs_are_shown(approvals: Approvals) -> None:
    approvals.approve("mail", DIGEST, ["read"])
    one = known(entry(), approvals)
    assert one.to_json() == {
        "name": "mail",
        "version": "3",
        "state": "ready",
        "digest": DIGEST,
        "functions": [
            {"name": "mail.read", "impact": 0, "approved": True},
            {"name": "mail.send", "impact": 2, "approved": False},
        ],
    }
    shown = one.description()
    assert (shown["origin"], shown["summary"]) == ("user", "Sends mail.")
    assert isinstance(shown["manifest"], dict)
    assert shown["manifest"]["purpose"] == "Sends."


@pytest.mark.parametrize("manifest", [None, b"\xff\xff damaged"])
def test_a_module_that_never_ran_has_nothing_to_approve(approvals: Approvals, manifest: bytes | None) -> None:
    new = CatalogueEntry("new", DIGEST, "user", "", manifest)
    assert known(new, approvals).to_json() == {
        "name": "new", "version": None, "state": "new", "digest": DIGEST, "functions": []
    }  # fmt: skip
    assert known(new, approvals).description()["manifest"] is None
    with pytest.raises(UsageError, match="The module new has never run here"):
        approve("new", [new], approvals, digest=DIGEST)


def test_functions_are_approved_one_by_one_or_all(approvals: Approvals) -> None:
    assert approve("mail", [entry("other"), entry()], approvals, ["mail.send"], digest=DIGEST).approved == {
        "send"
    }
    assert approve("mail", [entry()], approvals, ["read"], digest=DIGEST).approved == {"read", "send"}
    assert approve("other", [entry("other")], approvals, digest=DIGEST[:16]).approved == {"read", "send"}


@pytest.mark.parametrize(
    ("name", "functions", "digest", "says"),
    [
        ("nail", [], DIGEST, "There is no module 'nail'; there are mail, zip."),
        ("mail", [], "abd" + DIGEST[3:], CHANGED),
        ("mail", [], DIGEST[:15], CHANGED),
        ("mail", [], "", CHANGED),
        ("mail", ["read", "rm"], DIGEST, "The module mail has no function 'rm'; it has read, send."),
        ("mail", ["zip.read"], DIGEST, "The module mail has no function 'zip.read'; it has read, send."),
    ],
)
def test_what_is_not_there_approves_nothing(
    approvals: Approvals, name: str, functions: list[str], digest: str, says: str
) -> None:
    entries = [entry("zip"), entry()]
    with pytest.raises(UsageError) as raised:
        approve(name, entries, approvals, functions, digest=digest)
    assert str(raised.value) == says
    assert not any(known(one, approvals).approved for one in entries)


def test_an_empty_catalogue_says_that_there_are_none(approvals: Approvals) -> None:
    with pytest.raises(UsageError, match="there are none"):
        approve("mail", [], approvals, digest=DIGEST)


def test_a_shipped_module_needs_no_approval_on_disk(approvals: Approvals) -> None:
    assert approve("mail", [entry(origin="shipped")], approvals, digest=DIGEST).approved == {"read", "send"}
    assert known(entry(), approvals).approved == set()


def described(make: Callable[[], Module]) -> tuple[Manifest, LocalHost]:
    async def main() -> tuple[Manifest, LocalHost]:
        with tempfile.TemporaryDirectory() as sockets:
            host = LocalHost(Path(sockets), {"mail": make})
            try:
                (one,) = await host.catalogue()
                return await describe_once(host, one, print), host
            finally:
                await host.close()

    return asyncio.run(asyncio.wait_for(main(), 60))


def module(name: str) -> Module:
    made = Module(name, "Sends.")

    @made.function(impact=0)
    def read() -> str:
        """Read."""
        return ""

    return made


def test_a_module_is_asked_once_in_a_place_of_its_own() -> None:
    manifest, host = described(lambda: module("mail"))
    assert manifest.name == "mail"
    assert host.remembered == {"mail" * 8: manifest.to_proto()}
    assert host.started[0].stopped
    assert host.ended[0].startswith("describe-")


def test_a_module_that_gives_itself_another_name_is_refused() -> None:
    with pytest.raises(ModuleFault, match="The module mail reports the name shell"):
        described(lambda: module("shell"))
