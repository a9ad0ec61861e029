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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox.images.recipe import BASE, Recipe

PACKAGES: Final = (
    "python3", "python3-pytest",
    "bash", "dash", "coreutils", "grep", "sed", "findutils", "mawk", "diffutils", "patch", "tar", "gzip", "bzip2", "xz-utils", "zip", "unzip", "procps", "util-linux", "hostname", "debianutils",
    "less", "tree", "bc", "jq", "git",
    "base-files", "ncurses-base", "libstdc++6",
)  # fmt: skip

_FOR_ROOT: Final = (
    "apt", "dpkg", "debconf", "perl-base", "base-passwd", "passwd", "adduser", "login", "libc-bin", "ncurses-bin",
    "init-system-helpers", "sysvinit-utils", "lsb-base", "bsdutils", "mount", "sensible-utils", "ca-certificates",
)  # fmt: skip
"""What packages take for granted while they are set up: in a workshop, where somebody may be root."""

_TESTED_WITH: Final = (
    r"dist-packages(?:$|/(?:_?pytest|pluggy|iniconfig|packaging|attrs?|more_itertools|py)(?:$|[./-]))"
)
"""What of Debian's Python packages stays, below `usr/lib/python3`: pytest, and what it is made of."""

_DROPPED: Final = re.compile(
    rf"""
    dev/.  | boot/. | lib32$ | libx32$
    | var/(?:cache|log|lib/(?:apt|dpkg|python|systemd))/.
    | etc/(?:apt|dpkg|cron\.daily|init\.d|systemd|logrotate\.d|update-motd\.d|hostname|resolv\.conf|fstab)
    | usr/share/(?:doc|man|info|locale|lintian|bug|perl|perl5|gitweb|python3?/|bash-completion|binfmts|pixmaps
                |applications|apps|git-core/contrib|common-licenses|menu|mime|debconf|zsh|readline)
    | usr/lib/(?:systemd|udev|init|modules-load\.d|git-core/mergetools|python3/(?!{_TESTED_WITH})
                |python3\.\d+/(?:pydoc_data|idlelib|turtledemo|ensurepip|lib2to3|tkinter|test)/
                |python3\.\d+/turtle\.py)
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
_DROPPED_OF_ALL: Final = re.compile(
    r"""
    dev/. | boot/. | lib32$ | libx32$
    | var/(?:cache|log|lib/(?:apt|systemd))/.
    | etc/(?:cron\.daily|init\.d|systemd|logrotate\.d|update-motd\.d|hostname|resolv\.conf|fstab|machine-id)
    | etc/apt/(?:sources\.list|apt\.conf\.d/99mmdebstrap)
    | usr/share/(?:doc|man|info|lintian|bug|locale)/.
    | .*/__pycache__(?:/|$)
    """,
    re.VERBOSE,
)
"""What even a workshop has no use for: its programs are the user's, so little is left out."""
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
_APT: Final = """\
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
Acquire::Retries "1";
Dir::Cache::Archives "/workspace/.apt";
Binary::apt::APT::Keep-Downloaded-Packages "true";
DPkg::Post-Invoke {"sh /usr/lib/iact/forget-removed-packages";};
"""
"""What is fetched stays in the workspace, so that a session's next shell has it again without a network."""
_FORGET_REMOVED: Final = """\
# Keeps in the workspace the packages that are installed, and no others.
for deb in /workspace/.apt/*.deb; do
    [ -e "$deb" ] || continue
    name=$(dpkg-deb --field "$deb" Package)
    found=$(dpkg-query --show --showformat '${db:Status-Status} ${Version}' "$name" 2>/dev/null)
    [ "$found" = "installed $(dpkg-deb --field "$deb" Version)" ] || rm -f "$deb"
done
"""
AS_ROOT: Final = """\
export DEBIAN_FRONTEND=noninteractive
mkdir -p /workspace/.apt/partial
for deb in /workspace/.apt/*.deb; do
    [ -e "$deb" ] && dpkg --install /workspace/.apt/*.deb > /tmp/installed-again 2>&1
    break
done
exec "$@"
"""
"""A shell's script that begins a module whose user is real root: what the session installed is there again."""
_USERS: Final = {
    "usr/share/base-passwd/passwd.master": "etc/passwd",
    "usr/share/base-passwd/group.master": "etc/group",
}
_ALTERNATIVES: Final = {
    "usr/bin/gcc": ("usr/bin/cc", "gcc"),
    "usr/bin/g++": ("usr/bin/c++", "g++"),
    "usr/bin/vim.tiny": ("usr/bin/vi", "vim.tiny"),
    "usr/bin/gnuplot-nox": ("usr/bin/gnuplot", "gnuplot-nox"),
}
"""Links that a package's set-up program would have made: by what there is, its other name and where that leads."""
_LIBRARY: Final = re.compile(
    r"(usr/lib/[^/]+-linux-gnu)/((?:blas|lapack|openblas-pthread)/(lib[a-z]+\.so\.\d+))"
)
"""Libraries that are one of several for the same thing, each in a folder of its own."""
_CERTIFICATE: Final = re.compile(r"usr/share/ca-certificates/mozilla/.+\.crt")
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
_REMEMBER_PACKAGES: Final = (
    'for deb in "$1"/var/cache/apt/archives/*.deb; do'
    ' name=$(dpkg-deb --field "$deb" Package);'
    ' [ "$(dpkg-deb --field "$deb" Multi-Arch)" != same ] || name="$name:$(dpkg-deb --field "$deb" Architecture)";'
    ' dpkg-deb --field "$deb"; echo "Status: install ok installed"; echo;'
    ' : > "$1/var/lib/dpkg/info/$name.list";'
    ' done >> "$1/var/lib/dpkg/status"'
)
"""A package manager inside is to know what is there, though nothing was installed by one."""
_STAGES: Final = {
    "I: running apt-get update": "looking up what there is",
    "I: downloading packages": "fetching Debian packages",
    "I: extracting archives": "unpacking them",
    "I: creating tarball": "packing the system",
}
"""What `mmdebstrap` says while it works, and what people are told of it."""
_FOLDERS: Final = {"module": 0o755, "workspace": 0o755, "run": 0o755, "run/iact": 0o755, "tmp": 0o1777}


def keeps(name: str, recipe: Recipe = BASE) -> bool:
    """Whether the member `name` of the unpacked system (no leading "./") goes into the image of `recipe`."""
    if name in _FILES or name in _LINKS or name in _FOLDERS:  # ours is put there instead
        return False
    if recipe.workshop:
        return not _DROPPED_OF_ALL.match(name)
    special = _DROPPED_MORE if recipe.packages else _UNUSED
    return not (_DROPPED.match(name) or _GIT_EXTRA.match(name) or special.match(name))


def digest(recipe: Recipe = BASE) -> str:
    """SHA-256, in hex, over what the system is made from: this file, and further packages."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines(keepends=True)
    made_by = "".join(line for line in source if not line.startswith(("from ", "import ")))
    parts = [made_by.encode(), platform.machine().encode(), *map(str.encode, recipe.packages)]
    return hashlib.sha256(b"".join([*parts, b"workshop" if recipe.workshop else b""])).hexdigest()


def build(out: Path, report: Report, recipe: Recipe = BASE) -> None:
    """Write the system of `recipe` as a tar to `out`.

    Raises:
        SandboxUnavailable: this isn't Debian or Ubuntu, `mmdebstrap` is missing, or it failed.
    """
    if not shutil.which("mmdebstrap"):
        raise SandboxUnavailable(
            f"{recipe.title.capitalize()} can't be built without mmdebstrap; run `sudo apt-get install mmdebstrap`."
        )
    codename, archive = _release()
    with tempfile.TemporaryDirectory(prefix="iact-root-") as folder:
        whole = Path(folder) / "whole.tar"
        _unpack_packages(whole, codename, archive, recipe, report)
        with whole.open("rb") as source, out.open("wb") as target:
            _strip(source, target, recipe, codename)


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
            "This machine has no package lists; run `sudo apt-get update`, then try again."
        )
    return codename, "\n".join(wanted) + "\n"


def _unpack_packages(out: Path, codename: str, archive: str, recipe: Recipe, report: Report) -> None:
    hooks = Path("/usr/share/mmdebstrap/hooks/merged-usr")
    packages = [*PACKAGES, *recipe.packages, *(_FOR_ROOT if recipe.workshop else ())]
    command = ["mmdebstrap", "--variant=extract", f"--include={','.join(packages)}"]
    if hooks.is_dir():
        command.append(f"--hook-dir={hooks}")
    if recipe.workshop:
        command.append(f"--extract-hook={_REMEMBER_PACKAGES}")
    wrong = ""
    with subprocess.Popen(
        [*command, codename, str(out), "-"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
    ) as running:  # fmt: skip
        assert running.stdin is not None
        assert running.stderr is not None
        with suppress(BrokenPipeError):  # it says why
            running.stdin.write(archive)
            running.stdin.close()
        for line in running.stderr:
            stage = next((said for mark, said in _STAGES.items() if line.startswith(mark)), None)
            if stage is not None and recipe != BASE:
                report(f"building {recipe.title}: 1 of 3, {stage}")
            wrong = wrong or (line.strip() if line.startswith("E:") else "")
    if running.returncode:
        raise SandboxUnavailable(
            f"{recipe.title.capitalize()} could not be built ({wrong or 'it gave no reason'}); run "
            "`sudo .venv/bin/iact image build` to try it as root."
        )


def _strip(source: IO[bytes], target: IO[bytes], recipe: Recipe, codename: str) -> None:
    links, files = dict(_LINKS), dict(_FILES)
    certificates: list[bytes] = []
    with tarfile.open(fileobj=source, mode="r:") as whole, tarfile.open(fileobj=target, mode="w") as kept:
        for entry in whole:
            entry.name = entry.name.removeprefix("./")
            content = whole.extractfile(entry) if entry.isreg() else None
            if content is not None and _CERTIFICATE.fullmatch(entry.name):
                certificates.append(content.read())
                content.seek(0)
            if content is not None and recipe.workshop and entry.name in _USERS:
                files[_USERS[entry.name]] = content.read().decode()
                content.seek(0)
            if not keeps(entry.name, recipe):
                continue
            entry.mode &= 0o1777  # nothing in there makes anybody somebody else
            if entry.islnk():
                entry = _copy_of(entry, recipe)
            if recipe.workshop:
                links |= _alternative(entry.name)
            kept.addfile(entry, content)
        if recipe.workshop:
            files["etc/apt/sources.list"] = _public_archive(codename)
            files["etc/apt/apt.conf.d/50sandbox"] = _APT
            files["usr/lib/iact/forget-removed-packages"] = _FORGET_REMOVED
        if certificates:
            files[CERTIFICATES] = b"".join(certificates).decode()
        for extra, added in _additions(files, links):
            kept.addfile(extra, added)


def _public_archive(codename: str) -> str:
    """What `apt` inside installs from: public servers that speak https, and not the archive that this machine uses."""
    ubuntu = platform.freedesktop_os_release().get("ID") == "ubuntu"
    base = "https://mirrors.edge.kernel.org/ubuntu" if ubuntu else "https://deb.debian.org/debian"
    security, parts = (base, "main universe") if ubuntu else (f"{base}-security", "main")
    places = [(base, codename), (base, f"{codename}-updates"), (security, f"{codename}-security")]
    return "".join(f"deb {place} {suite} {parts}\n" for place, suite in places)


def _alternative(name: str) -> dict[str, str]:
    """The link that the set-up program of whatever brings file `name` would have made."""
    if found := _LIBRARY.fullmatch(name):
        return {f"{found[1]}/{found[3]}": found[2]}
    link = _ALTERNATIVES.get(name)
    return {link[0]: link[1]} if link else {}


def _copy_of(link: tarfile.TarInfo, recipe: Recipe) -> tarfile.TarInfo:
    """A hard link whose first name was dropped would point nowhere, so it becomes a symbolic one or stays."""
    link.linkname = link.linkname.removeprefix("./")
    if not keeps(link.linkname, recipe):
        target = _LINKS.get(link.linkname)
        link.type = tarfile.SYMTYPE
        link.linkname = f"/{link.linkname}" if target is None else f"/usr/bin/{Path(target).name}"
    return link


def _additions(
    files: Mapping[str, str], links: Mapping[str, str]
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    for name, mode in _FOLDERS.items():
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, mode
        yield folder, None
    for name, text in files.items():
        file = tarfile.TarInfo(name)
        file.size, file.mode = len(text.encode()), 0o644
        yield file, io.BytesIO(text.encode())
    for name, target in links.items():
        link = tarfile.TarInfo(name)
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, target, 0o777
        yield link, None
