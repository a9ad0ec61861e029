"""The modules' base image: a bare system, and on top of it the SDK with its dependencies.

The two parts are built separately: the system takes seconds to build and seldom changes, while the SDK takes one second
and changes often. Each is tagged with the digest of its sources, so an image that exists is the right one:
`iact-system:<digest>` below, `iact-base:<digest>` on top of it.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import docker
from docker.errors import APIError, ImageNotFound

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox.docker.engine import EngineFailure, connect
from iact.sandbox.images import cache, debian_root, payload
from iact.sandbox.images.recipe import BASE as PLAIN
from iact.sandbox.images.recipe import Kind, Recipe

Source = Literal["registry", "debian"]

BASE, SYSTEM = "iact-base", "iact-system"
_NAMES: Final[dict[Kind, tuple[str, str]]] = {
    "base": (BASE, SYSTEM),
    "more": ("iact-more", "iact-more-system"),
    "workshop": ("iact-workshop", "iact-workshop-system"),
}
"""The names of both parts: plain, with additions for one module of ours (a browser), and with a user's tools."""
REGISTRY_IMAGE = "python:3.12-slim"
"""The system to use if an image registry answers; whichever registry the engine is set up for."""

_COMPLETE: Final = (
    "set -e; apt-get update -q; apt-get install -q -y --no-install-recommends "
    f"{' '.join(name for name in debian_root.PACKAGES if not name.startswith('python3'))}; "
    "pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore pytest; "
    "rm -rf /var/lib/apt/lists/* /tmp/*"
)
"""What is run in that system, with a network: agents are told that it has the programs of the one from packages."""

_COMPLETING: Final = 600
"""Seconds that this may take. It takes half a minute."""

_KEPT: Final[dict[Kind, int]] = {"base": 4, "more": 4, "workshop": 2}
"""How many images of each kind are kept, so that a few versions of the program can alternate."""

_WARM_UP = 600
"""Seconds that the warm-up may take. It takes one, or half a minute in a workshop."""

_REGISTRY_PATIENCE = 5
"""Seconds in which a registry must begin to answer."""

_PYTHON = "iact.python"
"""Label of a base image: the version of its Python."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """An image that exists."""

    reference: str
    size: int
    """In bytes."""
    source: Source
    """Where its system came from."""


def python_of(client: docker.DockerClient, reference: str) -> str:
    """Version ("3.11") of the Python in base image `reference`. Blocks.

    Raises:
        SandboxUnavailable: the image has no such label.
    """
    try:
        version = client.images.get(reference).labels.get(_PYTHON)
    except EngineFailure as error:
        raise SandboxUnavailable(
            f"The engine lost the base image ({_short(error)}); run `iact image build`."
        ) from error
    if version is None:
        raise SandboxUnavailable("The base image was not built by iact; run `iact image build`.")
    return str(version)


def find(client: docker.DockerClient, recipe: Recipe = PLAIN) -> BaseImage | None:
    """The image of `recipe` that fits this version, if it exists. Blocks."""
    for source in _sources(recipe):
        tag = _base_tag(source, recipe)
        image = _present(client, tag)
        if image is not None:
            return BaseImage(tag, image, source)
    return None


def reference(recipe: Recipe = PLAIN) -> str:
    """The name of the image of `recipe` for this version when built from packages, wherever it is stored."""
    return _base_tag("debian", recipe)


def _sources(recipe: Recipe) -> Sequence[Source]:
    """Where the system of `recipe` can come from."""
    return ("debian", "registry") if recipe == PLAIN else ("debian",)


def ensure(
    client: docker.DockerClient,
    report: Report,
    *,
    source: Source | None = None,
    rebuild: bool = False,
    recipe: Recipe = PLAIN,
) -> BaseImage:
    """Find the image of `recipe` that fits this version, or build it. Blocks, for a minute or two at worst.

    `source`: where its system must come from; None for a registry if one answers, otherwise packages. `rebuild`: build
    both parts again, with today's packages. Only one process builds at a time. All images but the plain one can be
    built only from packages.

    Raises:
        SandboxUnavailable: it can't be built; the message says what to install or run.
    """
    if not rebuild and (found := find(client, recipe)) is not None and source in (None, found.source):
        return found

    # Another process may have built it while this one waited for its turn.
    with cache.one_builder(report):
        if not rebuild and (found := find(client, recipe)) is not None and source in (None, found.source):
            return found
        try:
            return _build(client, report, source if recipe == PLAIN else "debian", rebuild, recipe)
        except EngineFailure as error:
            raise SandboxUnavailable(
                f"The engine could not make {recipe.title} ({_short(error)}); run `iact doctor`."
            ) from error
        except OSError as error:
            raise SandboxUnavailable(
                f"{recipe.title.capitalize()} could not be written ({error.strerror}); free some disk space."
            ) from error


def python_for(client: docker.DockerClient, report: Report, recipe: Recipe) -> str:
    """Version of the Python in an image of `recipe`, whatever its wheels; its system is built if missing.

    Blocks. A system built for this is used again for the image.

    Raises:
        SandboxUnavailable: it can't be built; the message says what to install or run.
    """
    with cache.one_builder(report):
        try:
            source = _system(client, report, None if recipe == PLAIN else "debian", False, recipe)
            return _python_of(client, _system_tag(source, recipe))
        except EngineFailure as error:
            raise SandboxUnavailable(
                f"The engine could not make {recipe.title} ({_short(error)}); run `iact doctor`."
            ) from error


def _build(
    client: docker.DockerClient,
    report: Report,
    source: Source | None,
    rebuild: bool,
    recipe: Recipe,
) -> BaseImage:
    begun = time.monotonic()
    origin = _system(client, report, source, rebuild, recipe)

    named = f", among them {', '.join(_names(recipe.wheels)[:6])}" if recipe.wheels else ""
    report(f"building {recipe.title}: 2 of 3, fetching its Python packages{named}")
    system = _system_tag(origin, recipe)
    reference = _base_tag(origin, recipe)
    python = _python_of(client, system)
    with tempfile.TemporaryDirectory(prefix="iact-image-") as folder:
        sdk = Path(folder) / "sdk.tar"
        wheels = Path(folder) / "wheels.tar"
        sdk.write_bytes(payload.archive(python))
        if recipe.wheels:
            payload.write_wheels(wheels, recipe.wheels, python)

        report(f"building {recipe.title}: 3 of 3, adding the module SDK")
        archives = [archive for archive in (sdk, wheels) if archive.exists()]
        _add(client, system, archives, reference, python, recipe)

    size = _present(client, reference)
    if size is None:
        raise SandboxUnavailable(
            f"The engine lost {recipe.title} right after it was built; run `iact image build`."
        )

    _forget_old(client)
    took = time.monotonic() - begun
    report(f"{recipe.title} is ready: {reference}, {size / 1e6:.0f} MB, in {took:.0f} s")
    return BaseImage(reference, size, origin)


def _names(wheels: Sequence[str]) -> list[str]:
    return [line.partition("==")[0] for line in wheels]


def _system(
    client: docker.DockerClient,
    report: Report,
    source: Source | None,
    rebuild: bool,
    recipe: Recipe,
) -> Source:
    """Make sure that a system image exists. Return its source."""
    wanted: Sequence[Source] = (source,) if source else ("debian", "registry")
    for each in wanted:
        if not rebuild and _present(client, _system_tag(each, recipe)) is not None:
            return each

    if source != "debian" and _pull(client, report, required=source == "registry"):
        return "registry"

    stage = "a small system from Debian packages"
    if recipe.packages:
        stage = "a system from Debian packages, which takes a minute or two"
    report(f"building {recipe.title}: 1 of 3, {stage}")
    with tempfile.NamedTemporaryFile(prefix="iact-system-", suffix=".tar") as out:
        debian_root.build(Path(out.name), report, recipe)
        name, tag = _system_tag("debian", recipe).split(":")
        client.api.import_image_from_file(out.name, repository=name, tag=tag)
    return "debian"


def _pull(client: docker.DockerClient, report: Report, *, required: bool) -> bool:
    """Fetch the system from a registry, and complete it. False if that fails and it is not `required`."""
    report("building the sandbox's base image: 1 of 3, asking the image registry")
    try:
        _fetch()
        _complete(client)
    except EngineFailure as error:
        if not required:
            return False
        raise SandboxUnavailable(
            f"No image registry provided {REGISTRY_IMAGE} ({_short(error)}); on Debian or Ubuntu, run "
            "`sudo iact image build --from debian`."
        ) from error
    except SandboxUnavailable:
        if required:
            raise
        return False
    return True


def _fetch() -> None:
    """Have the engine pull the system of the registry."""
    repository, _, tag = REGISTRY_IMAGE.rpartition(":")
    with closing(connect(timeout=_REGISTRY_PATIENCE)) as asking:
        for line in asking.api.pull(repository, tag=tag, stream=True, decode=True):
            if "error" in line:
                raise APIError(str(line["error"]))


def _complete(client: docker.DockerClient) -> None:
    """Add the programs that every system of ours has to the one from the registry.

    Raises:
        SandboxUnavailable: they can't be fetched.
    """
    container = client.containers.create(
        REGISTRY_IMAGE,
        command=["sh", "-c", _COMPLETE],
        name=f"iact-image-{uuid.uuid4().hex[:12]}",
        environment={"DEBIAN_FRONTEND": "noninteractive"},
        security_opt=["no-new-privileges"],
        user="0:0",
    )
    try:
        container.start()
        if container.wait(timeout=_COMPLETING)["StatusCode"] != 0:
            said = container.logs(tail=3).decode("utf-8", "replace").strip().splitlines()
            raise SandboxUnavailable(
                f"The programs of the sandbox can't be added to {REGISTRY_IMAGE} ({said[-1] if said else 'no reason given'}); "
                "on Debian or Ubuntu, run `sudo iact image build --from debian`."
            )
        name, tag = _system_tag("registry").split(":")
        container.commit(name, tag=tag)
    finally:
        with suppress(*EngineFailure):
            container.remove(force=True, v=True)


def _add(
    client: docker.DockerClient,
    system: str,
    archives: Sequence[Path],
    reference: str,
    python: str,
    recipe: Recipe,
) -> None:
    """Add `archives` on top of image `system`, which has Python `python`, run the warm-up, and tag the result.

    The warm-up only loads our own SDK, in a container without a network or capabilities. Other Python code in a
    workshop is compiled, not run.
    """
    name, tag = reference.split(":")
    container = client.containers.create(
        system,
        command=["sh", "-c", payload.warm_up(workshop=recipe.workshop)],
        name=f"iact-image-{uuid.uuid4().hex[:12]}",
        environment=payload.ENVIRONMENT,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit="512m",
        pids_limit=64,
        user="0:0",
    )
    try:
        for archive in archives:
            with archive.open("rb") as content:
                container.put_archive("/", content)
        container.start()
        if container.wait(timeout=_WARM_UP)["StatusCode"] != 0:
            said = container.logs(tail=3).decode("utf-8", "replace").strip().splitlines()
            raise SandboxUnavailable(
                f"The module SDK doesn't start in its image ({said[-1] if said else 'without a word'}); "
                "this is a fault of this version, please report it."
            )
        changes = [f"ENV {key}={value}" for key, value in payload.ENVIRONMENT.items()]
        changes += ['CMD ["python3", "-m", "ext_modules.sdk"]', "ENV PYTHONDONTWRITEBYTECODE=1"]
        changes.append(f"LABEL {_PYTHON}={python}")
        container.commit(name, tag=tag, changes=changes)
    finally:
        with suppress(*EngineFailure):
            container.remove(force=True, v=True)


def _forget_old(client: docker.DockerClient) -> None:
    """Remove all but the newest few images of ours. The engine keeps those that a container still uses."""
    for kind, name in [(kind, name) for kind, names in _NAMES.items() for name in names]:
        images = sorted(
            client.images.list(name=name), key=lambda each: str(each.attrs["Created"]), reverse=True
        )
        for old in images[_KEPT[kind] :]:
            with suppress(*EngineFailure):
                client.images.remove(old.tags[0])


def _python_of(client: docker.DockerClient, system: str) -> str:
    """Version ("3.11") of the Python in image `system`."""
    said: bytes = client.containers.run(
        system,
        ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        network_mode="none",
        remove=True,
        log_config=docker.types.LogConfig(type="json-file"),
    )
    return said.decode().strip()


def _system_tag(source: Source, recipe: Recipe = PLAIN) -> str:
    if source == "debian":
        digest = debian_root.digest(recipe)
    else:
        digest = payload.digest_of([(REGISTRY_IMAGE, _COMPLETE.encode())])
    return f"{_NAMES[recipe.kind][1]}:{digest[:12]}"


def _base_tag(source: Source, recipe: Recipe = PLAIN) -> str:
    system = _system_tag(source, recipe)
    parts = [(system, payload.digest().encode()), ("environment", repr(payload.ENVIRONMENT).encode())]
    parts.append(("labels", _PYTHON.encode()))
    if recipe.wheels:
        parts.append(("wheels", "\n".join(recipe.wheels).encode()))
    return f"{_NAMES[recipe.kind][0]}:{payload.digest_of(parts)[:12]}"


def _present(client: docker.DockerClient, reference: str) -> int | None:
    """Size in bytes of image `reference`, or None if it is missing."""
    try:
        return int(client.images.get(reference).attrs["Size"])
    except ImageNotFound:
        return None


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
