"""Approvals are bound to a module's digest and to functions, survive on disk, and are seen by who reads them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.modules.approval import FILE, Approvals

A, B = "a" * 64, "b" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / FILE


def test_nothing_is_approved_before_a_person_does(path: Path) -> None:
    assert not Approvals.load(path).approved("mail", A, "send")


def test_an_approval_is_for_one_function_of_one_digest(path: Path) -> None:
    approvals = Approvals.load(path)
    approvals.approve("mail", A, ["send"])
    assert approvals.approved("mail", A, "send")
    assert not approvals.approved("mail", A, "read")
    assert not approvals.approved("mail", B, "send")
    assert not approvals.approved("post", A, "send")


def test_approvals_of_the_same_digest_add_up(path: Path) -> None:
    approvals = Approvals.load(path)
    approvals.approve("mail", A, ["send"])
    approvals.approve("mail", A, ["read"])
    assert approvals.approved("mail", A, "send")
    assert approvals.approved("mail", A, "read")


def test_a_changed_digest_loses_them(path: Path) -> None:
    approvals = Approvals.load(path)
    approvals.approve("mail", A, ["send", "read"])
    approvals.approve("mail", B, ["read"])
    assert approvals.approved("mail", B, "read")
    assert not approvals.approved("mail", B, "send")
    assert not approvals.approved("mail", A, "read")


def test_they_are_on_disk(path: Path) -> None:
    Approvals.load(path).approve("mail", A, ["send"])
    assert Approvals.load(path).approved("mail", A, "send")
    assert sorted(one.name for one in path.parent.iterdir()) == ["approvals.json", "approvals.lock"]


def test_a_reader_sees_what_another_approves_meanwhile(path: Path) -> None:
    reader = Approvals.load(path)
    assert not reader.approved("mail", A, "send")
    Approvals.load(path).approve("mail", A, ["send"])
    assert reader.approved("mail", A, "send")
    Approvals.load(path).approve("mail", B, ["send"])
    assert not reader.approved("mail", A, "send")


def test_a_file_of_something_else_is_refused_and_approves_nothing(path: Path) -> None:
    reader = Approvals.load(path)
    reader.approve("mail", A, ["send"])
    path.write_text('{"mail": "all of it"}')
    with pytest.raises(UsageError, match="does not hold approvals"):
        Approvals.load(path)
    with pytest.raises(UsageError, match="does not hold approvals"):
        reader.approve("mail", A, ["read"])
    assert not reader.approved("mail", A, "send")


def test_a_place_that_cant_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(UsageError, match="can't be written"):
        Approvals(tmp_path / "data" / FILE).approve("m", A, ["f"])


def _approve(path: Path, function: str) -> None:
    Approvals.load(path).approve("mail", A, [function])


def test_processes_that_approve_at_once_lose_nothing(path: Path) -> None:
    names = [f"f{number}" for number in range(8)]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_approve, args=(path, name)) for name in names[:3]]
    for process in processes:
        process.start()
    for name in names[3:]:
        _approve(path, name)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    approvals = Approvals.load(path)
    assert all(approvals.approved("mail", A, name) for name in names)
