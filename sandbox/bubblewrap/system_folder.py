"""The base system as a folder, for a sandbox without an engine: the content of the image, unpacked once.

It is made from the same Debian packages and the same SDK as the image, and named by the digest of both, so a folder
that exists is the right one.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox.images import cache, debian_root, payload
from iact.sandbox.images.recipe import BASE, Recipe

_MOUNTS: Final = ("proc", "dev", "run/egress", "run/site", "run/program", "run/look")
"""Mount points, which must exist because the system is read-only by then."""


def ensure(report: Report, recipe: Recipe = BASE) -> Path:
    """The folder of the system of `recipe`; built if missing. Blocks, for a minute or two.

    Raises:
        SandboxUnavailable: it can't be built; the message says what to install or run.
    """
    if (target := _place(recipe)).is_dir():
        return target
    with cache.one_builder(report):
        if target.is_dir():
            return target
        try:
            _build(target, recipe, report)
        except OSError as error:
            raise SandboxUnavailable(
                f"The sandbox's system could not be written ({error.strerror}); free some disk space."
            ) from error
    return target


def present(recipe: Recipe = BASE) -> Path | None:
    """The folder, if it exists."""
    target = _place(recipe)
    return target if target.is_dir() else None


def python_of(tree: Path) -> str:
    """Version ("3.11") of the Python in the system at `tree`.

    Raises:
        SandboxUnavailable: it has none.
    """
    link = tree / "usr" / "bin" / "python3"
    name = os.readlink(link) if link.is_symlink() else ""
    if not Path(name).name.startswith("python3."):
        raise SandboxUnavailable(f"The sandbox's base system has no Python; remove {tree} and try again.")
    return Path(name).name.removeprefix("python")


def _place(recipe: Recipe) -> Path:
    parts = [
        (debian_root.digest(recipe), payload.digest().encode()),
        ("mounts", " ".join(_MOUNTS).encode()),
    ]
    if recipe.wheels:
        parts.append(("wheels", "\n".join(recipe.wheels).encode()))
    return cache.folder() / "systems" / payload.digest_of(parts)[:12]


def _build(target: Path, recipe: Recipe, report: Report) -> None:
    begun = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    report(f"unpacking {recipe.title.replace('image', 'system')} from Debian packages")
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=".system-"))
    try:
        draft.chmod(0o755)
        with tempfile.NamedTemporaryFile(prefix="iact-system-", suffix=".tar") as packed:
            debian_root.build(Path(packed.name), report, recipe)
            _unpack(Path(packed.name), draft)
        for folder in _MOUNTS:
            (draft / folder).mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(payload.archive(python_of(draft)))) as added:
            added.extractall(draft, filter="tar")
        if recipe.wheels:
            _add_wheels(draft, recipe, report)
        _warm(draft, recipe)
        os.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    report(
        f"{recipe.title.replace('image', 'system')} is ready: {target}, in {time.monotonic() - begun:.0f} s"
    )


def _add_wheels(tree: Path, recipe: Recipe, report: Report) -> None:
    report(f"fetching {len(recipe.wheels)} Python packages")
    with tempfile.NamedTemporaryFile(prefix="iact-wheels-", suffix=".tar") as packed:
        payload.write_wheels(Path(packed.name), recipe.wheels, python_of(tree))
        _unpack(Path(packed.name), tree)


def _unpack(packed: Path, folder: Path) -> None:
    """Unpack an archive. Everything belongs to our user, and nothing keeps a bit that raises rights."""
    command = ["tar", "--extract", "--no-same-owner", "--file", str(packed), "--directory", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["tar gave no reason"])[-1]
        raise SandboxUnavailable(
            f"The sandbox's base system could not be unpacked ({why}); free some disk space."
        )


def _warm(tree: Path, recipe: Recipe) -> None:
    """Let Python store the byte code of what a module's start loads; only our own SDK runs."""
    command = [
        *("bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"),
        *("--bind", str(tree), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(part for name, value in payload.ENVIRONMENT.items() for part in ("--setenv", name, value)),
        *("--", "sh", "-c", payload.warm_up(workshop=recipe.workshop)),
    ]
    done = subprocess.run(command, env={}, executable=shutil.which("bwrap"), capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise SandboxUnavailable(
            f"The module SDK doesn't start in the bubblewrap sandbox ({said[-1] if said else 'without a word'}); "
            "run `iact doctor`."
        )
