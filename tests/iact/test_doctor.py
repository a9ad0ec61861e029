"""The doctor names the remedy of everything that can be missing; each time the thing asked is a fake."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Final, NoReturn

import pytest

from iact import doctor
from iact.core.errors import SandboxUnavailable
from iact.doctor import Check
from iact.models.weights import ModelFile
from iact.sandbox.bubblewrap.host import MISSING as NO_BUBBLEWRAP
from iact.sandbox.docker import engine, image
from iact.settings import Settings
from tests.endpoint import Endpoint

Patch = pytest.MonkeyPatch


def found(name: str, **settings: object) -> Check:
    """What the doctor says about one thing."""
    return next(one for one in doctor.checks(Settings.model_validate(settings)) if one.check == name)


def raises(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def no_engine(patch: Patch) -> None:
    patch.setattr(doctor, "connect", raises(SandboxUnavailable(engine.NO_ENGINE)))


def no_rights(patch: Patch) -> None:
    patch.setattr(doctor, "connect", raises(SandboxUnavailable(engine.NO_RIGHTS)))


def no_image(patch: Patch) -> None:
    patch.setattr(image, "find", lambda client: None)


def no_bubblewrap(patch: Patch) -> None:
    no_engine(patch)
    patch.setattr(doctor, "check_bubblewrap", raises(SandboxUnavailable(NO_BUBBLEWRAP)))


def no_model(patch: Patch) -> None:
    patch.setattr(ModelFile, "present", property(lambda one: False))


def no_model_package(patch: Patch) -> None:
    patch.setattr(importlib, "import_module", raises(ModuleNotFoundError("No module named 'xllamacpp'")))


def no_model_library(patch: Patch) -> None:
    said = "libgomp.so.1: cannot open shared object file: No such file or directory"
    patch.setattr(importlib, "import_module", raises(ImportError(said)))


def no_git(patch: Patch) -> None:
    patch.setattr(doctor, "available", lambda: False)


def no_space(patch: Patch) -> None:
    patch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1 << 20))


def old_kernel(patch: Patch) -> None:
    patch.setattr(platform, "release", lambda: "3.10.0-1160.el7.x86_64")


def old_python(patch: Patch) -> None:
    patch.setattr(sys, "version_info", (3, 9, 2))


MISSING: Final[list[tuple[str, Callable[[Patch], None], str]]] = [
    ("engine", no_engine, "sudo apt-get install docker.io"),
    ("engine", no_rights, 'sudo usermod -aG docker "$USER"'),
    ("isolation", no_engine, "fix engine first"),
    ("image", no_image, "iact image build"),
    ("bubblewrap", no_bubblewrap, "sudo apt-get install bubblewrap"),
    ("model", no_model, "iact.models.embedded fetch"),
    ("model", no_model_package, "set OPENAI_BASE_URL"),
    ("model", no_model_library, "sudo apt-get install libgomp1"),
    ("versions", no_git, "apt-get install git"),
    ("disk", no_space, "free some space at"),
    ("kernel", old_kernel, "Linux 4.18 or newer"),
    ("python", old_python, "Python 3.11 or newer"),
]


@pytest.mark.parametrize(("name", "fake", "remedy"), MISSING, ids=[fake.__name__ for _, fake, _ in MISSING])
def test_what_is_missing_has_a_remedy(
    name: str, fake: Callable[[Patch], None], remedy: str, monkeypatch: Patch, tmp_path: Path
) -> None:
    fake(monkeypatch)
    one = found(name, data=tmp_path)
    assert not one.ok
    assert remedy in one.remedy
    assert one.detail


def test_a_missing_browser_is_no_fault_but_named(monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    one = found("browser", data=tmp_path)
    assert (one.ok, one.remedy) == (True, "apt-get install chromium")


def test_a_data_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    one = found("data", data=tmp_path / "file" / "data")
    assert not one.ok
    assert "IACT_DATA" in one.remedy


@pytest.mark.parametrize(
    ("user", "running", "ok"), [(1000, False, False), (1000, True, True), (0, False, True)]
)
def test_name_spaces_matter_to_an_ordinary_user_without_an_engine(
    user: int, running: bool, ok: bool, monkeypatch: Patch, tmp_path: Path
) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "unprivileged_userns_clone").write_text("0\n", encoding="ascii")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(doctor, "_engine", lambda: Check("engine", running, ""))
    one = doctor.namespaces(tmp_path)
    assert (one.ok, one.remedy) == (ok, "sudo sysctl -w kernel.unprivileged_userns_clone=1")


def test_name_spaces_that_nothing_forbids(tmp_path: Path) -> None:
    assert doctor.namespaces(tmp_path) == Check("namespaces", True, "user namespaces: allowed")


# --- the endpoint -------------------------------------------------------------------------------------


def test_an_endpoint_that_answers(tmp_path: Path) -> None:
    with Endpoint({}) as endpoint:
        one = found("model", data=tmp_path, base_url=endpoint.url)
    assert one.ok
    assert one.detail == f"scripted at {endpoint.url}"


def test_an_endpoint_that_does_not_answer(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        one = found(
            "model", data=tmp_path, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", model="m"
        )
    assert not one.ok
    assert "does not answer" in one.detail
    assert "OPENAI_BASE_URL" in one.remedy


def test_an_endpoint_that_wants_a_key(tmp_path: Path) -> None:
    with Endpoint({}, api_key="secret") as endpoint:
        one = found("model", data=tmp_path, base_url=endpoint.url, model="m", api_key="wrong")
    assert not one.ok
    assert "OPENAI_API_KEY" in one.remedy


def test_an_endpoint_with_several_models(tmp_path: Path) -> None:
    with Endpoint({}, models=("large", "small")) as endpoint:
        one = found("model", data=tmp_path, base_url=endpoint.url)
    assert not one.ok
    assert one.remedy == "set IACT_MODEL to one of large, small"


def test_accounts_are_where_all_hosts_of_a_store_reach_them(tmp_path: Path) -> None:
    people = {"authenticator": "password"}
    alone = found("accounts", data=tmp_path, accounts=people)
    assert alone.ok
    assert not (tmp_path / "accounts.db").exists(), "nothing is made by looking"
    apart = found("accounts", data=tmp_path, accounts=people, store=f"file://{tmp_path}/store")
    assert not apart.ok
    assert "one shared accounts database" in apart.detail
    url = "postgresql://iact:xyzzy@127.0.0.1:9/none"
    away = found("accounts", data=tmp_path, accounts=people, accounts_url=url)
    assert not away.ok
    assert "IACT_ACCOUNTS_URL" in away.remedy
    assert "xyzzy" not in away.detail
