"""A small Debian (or Ubuntu) system with Python, made of packages: for machines that reach no image registry.

`mmdebstrap --variant=extract` only unpacks packages and runs nothing of them, in seconds. What their
set-up programs would have done and we need (users, `awk`) is added here, and what a sandbox has no
use for is dropped: documentation, translations, the package manager, and Perl, which only comes
along because git's rarer commands are written in it.
"""

from __future__ import annotations

import hashlib
import io
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from core.errors import SandboxUnavailable

PACKAGES: Final = (
    "python3", "bash", "dash", "coreutils", "grep", "sed", "findutils", "mawk", "diffutils", "patch",
    "tar", "gzip", "bzip2", "xz-utils", "zip", "unzip", "procps", "util-linux", "hostname", "debianutils",
    "less", "tree", "bc", "jq", "git",
    "base-files", "ncurses-base", "libstdc++6",
)  # fmt: skip

_DROPPED: Final = re.compile(
    r"""
    dev/.  | boot/. | lib32$ | libx32$
    | var/(?:cache|log|lib/(?:apt|dpkg|python|systemd))/.
    | etc/(?:apt|dpkg|cron\.daily|init\.d|systemd|logrotate\.d|update-motd\.d|hostname|resolv\.conf|fstab)
    | usr/share/(?:doc|man|info|locale|lintian|bug|perl|perl5|gitweb|python3?/|bash-completion|binfmts|pixmaps
                |applications|apps|git-core/contrib|common-licenses|menu|mime|debconf|zsh|readline)
    | usr/lib/(?:systemd|udev|init|modules-load\.d|git-core/mergetools|python3/|python3\.\d+/(?:pydoc_data|idlelib
                |turtledemo|ensurepip|lib2to3|tkinter|test)/|python3\.\d+/turtle\.py)
    | usr/lib/[^/]+-linux-gnu/(?:gconv|perl|perl-base|security|systemd|sasl2|libperl\.|libcurl
                |libldap|liblber|librtmp|libssh2|libnghttp2|libpsl|libmvec|libsasl|libdb-)
    | usr/s?bin/(?:dpkg|apt|perl|cpan|corelist|prove|pod|pl2pm|h2|ptar|scalar|git-shell|update-alternatives
                |start-stop-daemon|zipdetails|splain|shasum|streamzip|xsubpp|piconv|perlbug|perlthanks|perlivp
                |json_pp|instmodsh|encguess|enc2xs|libnetcfg|deb-systemd|agetty|fsck|mkfs|mkswap|swapo|fstrim
                |blkdiscard|fdformat|losetup|switch_root|pivot_root|chroot|hwclock|wipefs|zramctl)
    | .*/__pycache__(?:/|$)
    """,
    re.VERBOSE,
)
_UNUSED: Final = re.compile(
    r"usr/lib/[^/]+-linux-gnu/(?:libgnutls|libunistring|libidn2|libp11|libhogweed|libnettle|libbrotlienc)"
)
"""Libraries that nothing in the plain system needs."""
_DROPPED_MORE: Final = re.compile(
    r"usr/share/(?:icons|themes|sounds|X11/locale|libthai|alsa|chromium/initial)"
    r"|usr/lib/[^/]+-linux-gnu/(?:dri/|libLLVM|libz3|libgtk-3|libgdk-3|libicui18n|gtk-3|vdpau)"
    r"|usr/lib/chromium/(?:libVkLayer|chrome_crashpad|MEIPreload)"
)
"""What further packages bring along and a program without a screen does not need."""
_GIT_EXTRA: Final = re.compile(
    r"usr/lib/git-core/(?:git-(?:daemon|shell|sh-i18n--envsubst|http-[a-z]+|imap-send|remote-[a-z]+|credential-.*)"
    r"|.*svn.*|.*cvs.*|.*p4.*|.*email.*|git-add--interactive|git-archimport|git-gui.*|scalar)$"
)

_FILES: Final = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hostname": "sandbox\n",
    "etc/gitconfig": "[safe]\n\tdirectory = *\n[user]\n\tname = agent\n\temail = agent@sandbox\n",
}
_LINKS: Final = {
    "usr/bin/awk": "mawk",
    "usr/bin/which": "which.debianutils",
    "usr/bin/python": "python3",
    "usr/lib/git-core/git": "../../bin/git",
}
_FOLDERS: Final = {"module": 0o755, "workspace": 0o755, "run": 0o755, "run/iact": 0o755, "tmp": 0o1777}


def keeps(name: str, *, more: bool = False) -> bool:
    """Whether the member `name` of the unpacked system (no leading "./") goes into the image.

    `more`: the system holds further packages, for a module that needs them.
    """
    added = name in _FILES or name in _LINKS or name in _FOLDERS
    special = _DROPPED_MORE if more else _UNUSED
    return not (added or _DROPPED.match(name) or _GIT_EXTRA.match(name) or special.match(name))


def digest(packages: Sequence[str] = ()) -> str:
    """SHA-256, in hex, over the recipe: this file, and further packages."""
    recipe = [Path(__file__).read_bytes(), platform.machine().encode(), *map(str.encode, packages)]
    return hashlib.sha256(b"".join(recipe)).hexdigest()


def build(out: Path, packages: Sequence[str] = ()) -> None:
    """Write the system as a tar to `out`, with further `packages`.

    Raises:
        SandboxUnavailable: this isn't Debian or Ubuntu, `mmdebstrap` is missing, or it failed.
    """
    if not shutil.which("mmdebstrap"):
        raise SandboxUnavailable(
            "The sandbox's base image can't be built without mmdebstrap; run `sudo apt-get install mmdebstrap`."
        )
    codename, archive = _release()
    with tempfile.TemporaryDirectory(prefix="iact-root-") as folder:
        whole = Path(folder) / "whole.tar"
        _unpack_packages(whole, codename, archive, (*PACKAGES, *packages))
        with whole.open("rb") as source, out.open("wb") as target:
            _strip(source, target, more=bool(packages))


def _release() -> tuple[str, str]:
    """The host's release and the lines that name its package archive. Other archives of the host are left out."""
    try:
        release = platform.freedesktop_os_release()
        command = ["apt-get", "indextargets", "--format", "$(ORIGIN)|deb $(SITE) $(RELEASE) $(COMPONENT)"]
        listed = subprocess.run(
            [*command, "Created-By: Packages"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    except OSError as error:
        raise SandboxUnavailable(
            "The sandbox's base image can be built from packages on Debian and Ubuntu only; "
            "run `iact image build --from registry` where a registry answers."
        ) from error
    codename = release.get("VERSION_CODENAME", "")
    lines = {
        line.partition("|")[2] for line in listed.splitlines() if line.startswith(("Debian|", "Ubuntu|"))
    }
    wanted = sorted(
        line for line in lines if line.split()[-1] in ("main", "universe") and f" {codename}" in line
    )
    if not codename or not wanted:
        raise SandboxUnavailable(
            "No package lists are on this machine; run `sudo apt-get update`, then try again."
        )
    return codename, "\n".join(wanted) + "\n"


def _unpack_packages(out: Path, codename: str, archive: str, packages: Sequence[str]) -> None:
    hooks = Path("/usr/share/mmdebstrap/hooks/merged-usr")
    command = ["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(packages)}"]
    if hooks.is_dir():
        command.append(f"--hook-dir={hooks}")
    done = subprocess.run(
        [*command, codename, str(out), "-"], input=archive, capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if line.startswith("E:")), "it gave no reason")
        raise SandboxUnavailable(
            f"The sandbox's base image could not be built ({why}); run `sudo .venv/bin/iact image build` "
            "to try it as root."
        )


def _strip(source: IO[bytes], target: IO[bytes], *, more: bool) -> None:
    with tarfile.open(fileobj=source, mode="r:") as whole, tarfile.open(fileobj=target, mode="w") as kept:
        for entry in whole:
            entry.name = entry.name.removeprefix("./")
            if not keeps(entry.name, more=more):
                continue
            if entry.islnk():
                entry = _copy_of(entry, more=more)
            kept.addfile(entry, whole.extractfile(entry) if entry.isreg() else None)
        for extra, content in _additions():
            kept.addfile(extra, content)


def _copy_of(link: tarfile.TarInfo, *, more: bool) -> tarfile.TarInfo:
    """A hard link whose first name was dropped would point nowhere, so it becomes a symbolic one or stays."""
    link.linkname = link.linkname.removeprefix("./")
    if not keeps(link.linkname, more=more):
        target = _LINKS.get(link.linkname)
        link.type = tarfile.SYMTYPE
        link.linkname = f"/{link.linkname}" if target is None else f"/usr/bin/{Path(target).name}"
    return link


def _additions() -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    for name, mode in _FOLDERS.items():
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, mode
        yield folder, None
    for name, text in _FILES.items():
        file = tarfile.TarInfo(name)
        file.size, file.mode = len(text), 0o644
        yield file, io.BytesIO(text.encode())
    for name, target in _LINKS.items():
        link = tarfile.TarInfo(name)
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, target, 0o777
        yield link, None
