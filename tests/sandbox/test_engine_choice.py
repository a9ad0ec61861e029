"""Which of its engine's ways of isolating a host uses, from what engines say of themselves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import SandboxUnavailable
from iact.core.ports import JSON
from iact.sandbox import DockerHost
from iact.sandbox.docker import isolation, options
from iact.sandbox.docker.isolation import Isolation, UserMap
from iact.sandbox.limits import Limits, Place
from tests.sandbox.backends import Backend
from tests.sandbox.inside import hosting_on
from tests.sandbox.test_lifecycle import folders

RUNC: dict[str, JSON] = {"path": "runc"}
GVISOR: dict[str, JSON] = {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none", "--host-uds=all"]}
MAPPED = UserMap(100_000, 100_000)


def engine(**runtimes: JSON) -> dict[str, JSON]:
    return {"Runtimes": {"runc": RUNC, **runtimes}, "SecurityOptions": ["name=seccomp,profile=default"]}


def mapping(info: dict[str, JSON]) -> dict[str, JSON]:
    options: list[JSON] = ["name=seccomp,profile=default", "name=userns"]
    return {**info, "SecurityOptions": options, "DockerRootDir": "/var/lib/docker/100000.100000"}


@pytest.mark.parametrize(
    ("info", "wanted", "used"),
    [
        (engine(), "auto", Isolation()),
        (engine(runsc=GVISOR), "auto", Isolation("runsc", gvisor=True, joins=False)),
        (engine(strict=GVISOR), "auto", Isolation("strict", gvisor=True, joins=False)),
        (engine(runsc={"path": "/usr/bin/runsc"}), "auto", Isolation()),
        (
            engine(runsc={"path": "/usr/bin/runsc"}),
            "runsc",
            Isolation("runsc", gvisor=True, shares_sockets=False, joins=False),
        ),
        (engine(runsc={**GVISOR, "runtimeArgs": ["--host-uds=all"]}), "auto", Isolation()),
        (engine(runsc=GVISOR), "runc", Isolation("runc")),
        (
            engine(kata={"path": "/usr/bin/kata-runtime"}),
            "kata",
            Isolation("kata", shares_sockets=False, joins=False),
        ),
        (
            engine(vm={"runtimeType": "io.containerd.kata.v2"}),
            "vm",
            Isolation("vm", shares_sockets=False, joins=False),
        ),
        ({**engine(), "OperatingSystem": "Docker Desktop"}, "auto", Isolation(shares_sockets=False)),
        (mapping(engine()), "auto", Isolation(mapped=MAPPED)),
        (mapping(engine(runsc=GVISOR)), "auto", Isolation("runsc", gvisor=True, joins=False)),
        (mapping(engine(runsc=GVISOR)), "runc", Isolation("runc", mapped=MAPPED)),
        ({"SecurityOptions": ["name=userns"], "DockerRootDir": "/var/lib/docker"}, "auto", Isolation()),
        ({}, "auto", Isolation()),
    ],
)
def test_what_is_used(info: dict[str, JSON], wanted: str, used: Isolation) -> None:
    assert isolation.of(info, wanted) == used


def test_a_runtime_that_the_engine_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(SandboxUnavailable, match=r"no runtime 'kata', only runc, runsc; .*IACT_RUNTIME"):
        isolation.of(engine(runsc=GVISOR), "kata")


def test_why_gvisor_is_not_used() -> None:
    assert isolation.without_gvisor(engine()) == "no"
    assert "--host-uds" in isolation.without_gvisor(engine(runsc={"path": "/usr/bin/runsc"}))


def test_its_own_kernel_holds_a_module_to_the_number_of_processes() -> None:
    bounds = Limits(processes=64)
    assert Isolation().bounds(bounds) == bounds
    place = Place(Path("/c"), Path("/s"), None, "0:0")
    told = options.host_options(place, Isolation("runsc", gvisor=True).bounds(bounds), "runsc")
    assert (told["pids_limit"], told["runtime"]) == (1500, "runsc")
    assert {"Name": "nproc", "Soft": 64, "Hard": 64} in told["ulimits"]


PLACE = Place(Path("/c"), Path("/s"), Path("/w"), "1000:1000")


def test_who_is_outside_the_map_stays_who_they_are() -> None:
    place, uid, gid = isolation.seat(PLACE, MAPPED, 1000, 1000, root=True)
    assert (place.user, place.own_users, uid, gid) == ("1000:1000", False, 1000, 1000)
    assert options.host_options(place, Limits())["userns_mode"] == "host"


def test_an_ordinary_user_can_give_nothing_away() -> None:
    place, uid, _ = isolation.seat(PLACE, MAPPED, 100_000, 100_000, root=False)
    assert (place.own_users, uid) == (False, 100_000)


@given(st.integers(0, 65_535), st.integers(0, 65_535))
def test_the_owner_of_a_workspace_is_found_inside(user: int, group: int) -> None:
    uid, gid = MAPPED.first + user, MAPPED.group + group
    place, *outside = isolation.seat(PLACE, MAPPED, uid, gid, root=True)
    assert (place.user, place.own_users) == (f"{user}:{group}", True)
    assert outside == [uid, gid]


def test_without_a_workspace_it_is_nobody_of_the_hosts() -> None:
    place, uid, gid = isolation.seat(Place(Path("/c"), Path("/s"), None, "0:0"), MAPPED, 0, 0, root=True)
    assert (place.user, place.own_users, uid, gid) == ("0:0", True, 100_000, 100_000)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_roots_is_given_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("ours", encoding="utf-8")
    workspace = tmp_path / "workspace"
    (workspace / "deep").mkdir(parents=True)
    (workspace / "deep" / "file").write_text("x", encoding="utf-8")
    (workspace / "link").symlink_to(outside)
    (workspace / "folder").symlink_to(tmp_path)
    theirs = workspace / "theirs"
    theirs.write_text("x", encoding="utf-8")
    os.chown(theirs, 4711, 4711)
    isolation.give(workspace, 100_000, 100_001)
    for path in (workspace, workspace / "deep", workspace / "deep" / "file", workspace / "link"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (100_000, 100_001)
    assert outside.stat().st_uid == tmp_path.stat().st_uid == 0
    assert theirs.stat().st_uid == 4711


@pytest.mark.parametrize(
    ("place", "ours"),
    [
        ("sessions/s/workspace", True),
        ("run/1-2@3-set", True),
        ("sessions/s/live/merged", False),
        ("sessions/s/live/workspace", False),
        ("sessions/s/workspace/folder", False),
        ("sessions/s", False),
        ("run/1-2@3-tmp", False),
        ("", False),
        ("../elsewhere", False),
    ],
)
def test_only_a_sessions_own_workspace_is_given_away(tmp_path: Path, place: str, ours: bool) -> None:
    """What is in an overlay of a live directory belongs to whom it belongs to there."""
    host = DockerHost(tmp_path / "data")
    assert host._ours((tmp_path / "data" / place).resolve()) is ours


CONFINED = (
    "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n"
)


@pytest.mark.parametrize(
    ("line", "other", "kept"),
    [
        ("", "", []),
        ("CapEff:\t0\n", "CapEff:\t00000000a80425fb\n", ["CapEff"]),
        ("CapBnd:\t0\n", "CapBnd:\t0000000000200000\n", ["CapBnd"]),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", ["NoNewPrivs"]),
        ("Seccomp:\t2", "Seccomp:\t0", ["Seccomp"]),
    ],
)
def test_what_a_process_should_have_lost(line: str, other: str, kept: list[str]) -> None:
    assert isolation.gaps(CONFINED.replace(line, other) if line else CONFINED) == kept


@pytest.mark.parametrize("backend", ["docker", "mapped"], indirect=True, scope="module")
def test_a_module_that_kept_its_rights_is_not_used(
    backend: Backend, loop: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is told to take less; the kernel's own account of the container's process shows it."""
    confined = options.host_options

    def lax(
        place: Place,
        bounds: Limits,
        runtime: str = "",
        labels: Mapping[str, str] | None = None,
        *,
        init: bool = True,
    ) -> options.HostOptions:
        told = confined(place, bounds, runtime, labels, init=init)
        told["cap_drop"], told["security_opt"] = [], []
        return told

    monkeypatch.setattr(options, "host_options", lax)

    async def scenario() -> None:
        async with hosting_on(backend, tmp_path) as host:
            with pytest.raises(SandboxUnavailable, match=r"without its full isolation \(CapEff.*NoNewPrivs"):
                await backend.start(host, "shell", session="s", workspace=tmp_path)

    loop.run(scenario())
    assert folders(tmp_path) == []
