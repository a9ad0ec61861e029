"""What works on this machine and what doesn't, each with the command that would fix it.

Every check is independent and returns one `Check`. No check raises, and none changes anything unless it is asked to.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import IactError, SandboxUnavailable, WorkspaceError
from iact.core.session.models import OPENAI, list_models
from iact.models.added import chosen_file
from iact.models.readiness import look
from iact.sandbox.bubblewrap.host import check as check_bubblewrap
from iact.sandbox.docker import image, isolation
from iact.sandbox.docker.engine import EngineFailure, connect
from iact.sandbox.leftovers import Leftovers, find, remove
from iact.sandbox.live import layers_in, open_live
from iact.sandbox.workspace.versions import available
from iact.settings import Settings
from iact.user_folders import NODES, USERS

_EXTRA = "pip install 'iact[cluster]'"
_ENOUGH_DISK = 1 << 30
"""Bytes that should be free, for an image and a session's files."""


_OLDEST_KERNEL = (4, 18)
"""The first kernel whose namespaces, control groups and system-call filters all do what the sandbox needs."""
_ROOT = "which needs an engine that maps users or has gVisor, and iact running as root"
_FORBIDDING = {
    "user.max_user_namespaces": ("0", "10000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Kernel settings that can forbid namespaces to ordinary users: the value that does, and one that does not."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `detail`: what was found. `remedy`: what to do about it, or "" if nothing."""

    check: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(settings: Settings, *, fix: bool = False) -> list[Check]:
    """Check everything that the product needs under these settings. Blocks for a few seconds at most.

    `fix`: remove what processes left that are gone.
    """
    engine = _engine()
    looks: list[Callable[[], Check]] = [
        _python,
        kernel,
        lambda: engine,
        lambda: _isolation(engine),
        lambda: _image(engine),
        _bubblewrap,
        namespaces,
        lambda: _model(settings),
        _versions,
        lambda: live(settings.data),
        lambda: readers(settings.data, settings.sandbox),
        _browser,
        lambda: _data(settings.data),
        lambda: _disk(settings.data),
        lambda: leftovers(settings.data, fix=fix),
    ]
    if settings.store is not None:
        looks.append(lambda: _store(settings))
    if settings.cluster is not None:
        looks.append(lambda: _cluster(settings))
    if settings.accounts.authenticator != "token":
        looks.append(lambda: _accounts(settings))
    return [look() for look in looks]


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    remedy = "" if ok else "install Python 3.11 or newer, and iact with it"
    return Check("python", ok, f"Python {platform.python_version()} at {sys.executable}", remedy)


def kernel() -> Check:
    """Whether the kernel is new enough for the sandbox."""
    release = platform.release()
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) >= _OLDEST_KERNEL:
        return Check("kernel", True, f"Linux {release}", "")

    oldest = ".".join(map(str, _OLDEST_KERNEL))
    return Check("kernel", False, f"Linux {release}", f"use a system with Linux {oldest} or newer")


def namespaces(sysctl: Path = Path("/proc/sys")) -> Check:
    """Whether an ordinary user may create namespaces, as bubblewrap does. Root always may."""
    for name, (bad, good) in _FORBIDDING.items():
        try:
            value = sysctl.joinpath(*name.split(".")).read_text(encoding="ascii").strip()
        except OSError:
            continue  # a kernel without this setting doesn't forbid it
        if value == bad:
            is_needed = os.geteuid() != 0 and not _engine().ok
            detail = f"{name} is {bad}: ordinary users can't create user namespaces, which bubblewrap needs."
            return Check("namespaces", not is_needed, detail, f"sudo sysctl -w {name}={good}")

    return Check("namespaces", True, "user namespaces: allowed")


def live(data: Path) -> Check:
    """Whether a directory of the user's can be shown through an overlay, in which agents' changes wait.

    It is tried with an empty directory; what waits would be on the disk of the data directory, if that is there.
    """
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            tempfile.TemporaryDirectory(dir=_writable(data)) as store,
        ):
            open_live(Path(folder), Path(store) / "live").close()
    except (WorkspaceError, OSError) as error:
        detail = (
            f"Changes in a directory of yours can't be held back for review: {error} Calls that could write there count "
            "as impact 2."
        )
        remedy = "work without --workspace, or allow such calls with --intent 2"
        return Check("live", False, detail, remedy)

    detail = "changes in a directory of yours wait in a copy until you apply them"
    return Check("live", True, detail)


def _writable(data: Path) -> Path | None:
    """The data directory, if files can be made in it already; None: temporary files go where they usually do."""
    return data if data.is_dir() and os.access(data, os.W_OK) else None


def readers(data: Path, backend: str) -> Check:
    """Whether agents of intent 0 can run code in a layer over the files that is thrown away."""
    if backend == "kubernetes":
        detail = "Agents of intent 0 look at files, and can't run tests or compute: pods have no layer that is thrown away."
        return Check("readers", False, detail, "give agents that must run something --intent 1")

    try:
        with tempfile.TemporaryDirectory(dir=_writable(data)) as folder:
            layers_in(Path(folder))
    except (WorkspaceError, OSError) as error:
        detail = (
            f"Agents of intent 0 have no layer that is thrown away: {error} They look at files, and can't run tests or "
            "compute."
        )
        return Check("readers", False, detail, "run the product as root, or give such agents --intent 1")

    detail = "agents of intent 0 run tests and compute in a layer that is thrown away"
    return Check("readers", True, detail)


def _store(settings: Settings) -> Check:
    """Whether the shared store does what journals rely on: create a name only once, and list it immediately."""
    try:
        from iact.cluster.objects import open_objects
    except ImportError as error:
        return Check(
            "store", False, f"The store {settings.store} can't be used: {error.name} is missing.", _EXTRA
        )

    remedy = "check that IACT_STORE is right, that its keys are set, and that the store can be reached"
    try:
        objects = open_objects(settings.store or "")
        name = f"doctor/{secrets.token_hex(8)}"
        began = time.monotonic()
        try:
            is_created = objects.create(name, b"1")
            is_created_again = objects.create(name, b"2")
            seconds = time.monotonic() - began
            content = objects.get(name)
            is_listed = name in objects.names("doctor/")
        finally:
            objects.remove(name)
    except IactError as error:
        return Check("store", False, str(error), remedy)

    keeps_the_first = is_created and not is_created_again and content == b"1"
    if not keeps_the_first or not is_listed:
        detail = (
            f"The store {settings.store} accepts the creation of a name that already exists, so it can't "
            "keep two hosts apart."
        )
        return Check("store", False, detail, "use a store that supports conditional writes (If-None-Match)")

    return Check("store", True, f"{settings.store}: creates a name only once, in {seconds * 500:.0f} ms")


def _cluster(settings: Settings) -> Check:
    """Which hosts are running; with Ray, also whether it is installed and its cluster can be reached."""
    failure = _ray(settings) if settings.cluster != "static" else None
    if failure is not None:
        return failure

    try:
        from iact.cluster.leases import Members, read_hosts
        from iact.cluster.objects import open_objects

        now = time.monotonic()
        notes = read_hosts(open_objects(settings.store or ""))
        hosts = Members().observe(notes, now=now, wall=time.time()).alive(now)
    except ImportError as error:
        return Check("cluster", False, f"Hosts can't be looked up: {error.name} is missing.", _EXTRA)
    except IactError as error:
        return Check("cluster", False, str(error), "fix store first")

    if not hosts:
        return Check("cluster", False, "No host of the cluster is running.", "iact cluster host")
    names = ", ".join(host.host for host in hosts)
    return Check("cluster", True, f"running ({settings.cluster}): {names}")


def _ray(settings: Settings) -> Check | None:
    """What is wrong with Ray; None: its cluster answers."""
    if importlib.util.find_spec("ray") is None:
        return Check("cluster", False, "Ray is not installed.", _EXTRA)

    host, _, port = (settings.cluster or "").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
    except (OSError, ValueError) as error:
        why = str(error).rstrip(".")
        return Check(
            "cluster", False, f"No Ray cluster answers at {settings.cluster}: {why}.", "ray start --head"
        )

    return None


def _accounts(settings: Settings) -> Check:
    """Whether the accounts database can be reached, and is shared by all hosts of a store."""
    try:
        from iact.accounts.database import look_at_database
        from iact.shared_users import check_accounts
    except ImportError as error:
        detail = f"Nobody can sign in: {error.name} is missing."
        return Check("accounts", False, detail, "pip install 'iact[accounts]'")

    try:
        check_accounts(settings)
        database = look_at_database(settings.data, settings.accounts_url)
    except IactError as error:
        return Check(
            "accounts", False, str(error), "set IACT_ACCOUNTS_URL to a PostgreSQL database that answers"
        )

    return Check("accounts", True, f"{settings.accounts.authenticator}, stored in {database}")


def _engine() -> Check:
    try:
        with closing(connect(timeout=10)) as client:
            version = client.version()
    except SandboxUnavailable as error:
        what, _, remedy = str(error).partition("; ")
        return Check("engine", False, f"{what}.", remedy)
    except EngineFailure as error:
        return Check(
            "engine", False, f"The Docker engine answers with an error: {error}.", "restart the Docker engine"
        )
    return Check("engine", True, f"Docker {version['Version']}, API {version['ApiVersion']}")


def _isolation(engine: Check) -> Check:
    """How well the engine itself isolates containers. The sandbox's containers are confined in any case."""
    unknown = Check(
        "isolation", False, "No Docker engine answers, so its isolation can't be checked.", "fix engine first"
    )
    if not engine.ok:
        return unknown

    try:
        with closing(connect(timeout=10)) as client:
            info = client.info()
    except (SandboxUnavailable, *EngineFailure):
        return unknown

    options = [str(option) for option in info.get("SecurityOptions") or ()]
    used = isolation.of(info)
    filtered = "yes" if any("seccomp" in option for option in options) else "no"
    mapped = f"no, user {used.mapped.first}" if used.mapped else "yes"
    gvisor = "used" if used.gvisor else isolation.without_gvisor(info)
    root = "yes" if used.root(ours=os.geteuid() == 0) else f"no, {_ROOT}"
    detail = (
        f"system calls filtered: {filtered}; root in the container is root outside: {mapped}; gVisor: {gvisor}; "
        f"a shell in a workshop is real root, with apt: {root}"
    )
    if not any("seccomp" in option for option in options):
        return Check("isolation", False, detail, "install an engine with seccomp")
    return Check("isolation", True, detail)


def _image(engine: Check) -> Check:
    remedy = "iact image build"
    unknown = Check(
        "image",
        False,
        "No Docker engine answers, so the sandbox's base image can't be checked.",
        "fix engine first",
    )
    if not engine.ok:
        return unknown

    try:
        with closing(connect(timeout=10)) as client:
            base = image.find(client)
    except SandboxUnavailable:
        return unknown
    except EngineFailure as error:
        return Check(
            "image", False, f"The Docker engine can't list its images: {error}.", "restart the Docker engine"
        )

    if base is None:
        return Check(
            "image", False, "The sandbox's base image is not built yet (the first tool call does it).", remedy
        )
    return Check("image", True, f"{base.reference}, {base.size / 1e6:.0f} MB, from {base.source}")


def _bubblewrap() -> Check:
    """Whether bubblewrap works, under which tools run if no engine answers. With an engine it may be missing."""
    try:
        check_bubblewrap()
    except SandboxUnavailable as error:
        what, _, remedy = str(error).partition("; ")
        return Check("bubblewrap", _engine().ok, f"{what}.", remedy.removesuffix("."))
    return Check(
        "bubblewrap", True, "works; without a Docker engine, tools run under it, with weaker isolation"
    )


def _model(settings: Settings) -> Check:
    """Check the endpoint if one is set, otherwise the model on board."""
    if not settings.without_endpoint:
        return _endpoint(settings)

    board = look(chosen_file(settings.embedded, settings.data))
    if board.missing == "package":
        remedy = "pip install xllamacpp, or set OPENAI_BASE_URL to a model endpoint"
        return Check("model", False, "The package that runs the model on board is not installed.", remedy)
    if board.missing == "library":
        remedy = f"sudo apt-get install {board.library}, or set OPENAI_BASE_URL to a model endpoint"
        detail = f"The model on board needs a system library that is missing: {board.detail}."
        return Check("model", False, detail, remedy)

    weights = board.selection.weights
    if weights is None:
        return Check("model", False, board.selection.reason, "set OPENAI_BASE_URL to a model endpoint")
    if weights.present:
        return Check("model", True, f"{weights.path}, {weights.size / 1e6:.0f} MB")
    detail = "The model on board is not downloaded yet (that happens when it is first needed)."
    return Check("model", False, detail, f"{sys.executable} -m iact.models.embedded fetch")


def _endpoint(settings: Settings) -> Check:
    """Whether the endpoint answers, and whether a model is chosen if it has several."""
    url = (settings.base_url or OPENAI).rstrip("/")
    endpoint = list_models(url, settings.api_key)
    if endpoint.fault:
        detail = f"The endpoint {url} does not answer: {endpoint.fault}."
        return Check("model", False, detail, "start it, or set OPENAI_BASE_URL to another")
    if endpoint.refused:
        detail = f"The endpoint {url} rejects the key (HTTP {endpoint.status})."
        return Check("model", False, detail, "set OPENAI_API_KEY to a key that it accepts")

    chosen = settings.model_smart or settings.model
    listed = endpoint.names
    if chosen is None and len(listed) != 1:
        detail = f"No model is chosen, and the endpoint {url} lists {len(listed) or 'none'}."
        some = f" to one of {', '.join(listed[:8])}" if listed else ""
        return Check("model", False, detail, f"set IACT_MODEL{some}")

    return Check("model", True, f"{chosen or listed[0]} at {url}")


def _versions() -> Check:
    if available():
        return Check("versions", True, "git keeps versions of the files that agents change")
    detail = "git is not installed, so no versions of the files that agents change are kept."
    return Check("versions", False, detail, "apt-get install git")


def _browser() -> Check:
    """Whether Chromium is installed, which only the tests need: users bring a browser, and the module's image has one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return Check("browser", True, f"{found}, for the tests of the page")
    detail = "Chromium is not installed; only the tests of the page need it"
    return Check("browser", True, detail, "apt-get install chromium")


def _data(data: Path) -> Check:
    remedy = "make it writable, or set IACT_DATA to another directory"
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Check("data", False, f"{data} can't be written to: {error.strerror}.", remedy)
    return Check("data", True, str(data))


def _disk(data: Path) -> Check:
    place = next(folder for folder in (data.resolve(), *data.resolve().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    is_enough = free >= _ENOUGH_DISK
    remedy = "" if is_enough else f"free some space at {place}"

    return Check("disk", is_enough, f"{free / 1e9:.1f} GB free at {place}", remedy)


def leftovers(data: Path, *, fix: bool = False) -> Check:
    """Whether processes that were killed left something behind. `fix`: remove it first."""
    places = _data_directories(data)
    removed = remove(places) if fix else Leftovers()
    left = find(places)
    if left:
        refused = " (it can't be removed now)" if fix else ""
        detail = f"Processes that are gone left {left.told()}{refused}."
        if left.engine_silent:
            detail += " Containers were not checked, because no engine answers."
        return Check("leftovers", False, detail, "iact doctor --fix")

    detail = f"removed {removed.told()} that processes left" if removed else "no process left anything behind"
    if left.engine_silent:
        detail += "; containers were not checked, because no engine answers"
    return Check("leftovers", True, detail)


def _data_directories(data: Path) -> list[Path]:
    """The data directory, and those of its users and of hosts on this machine, which are laid out like it."""
    inside = [folder for name in (USERS, NODES) for folder in data.glob(f"{name}/*") if folder.is_dir()]
    return [data, *sorted(inside)]
