"""Paths where even a read or a harmless write gives power away: secrets, and files that run as code."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import Final

from iact.core.gate.shell.words import GAP, GLOB

_SECRET: Final = re.compile(
    r"(?:^|/)\.(?:ssh|gnupg|aws|azure|kube|docker|password-store|mozilla|config/(?:gcloud|gh|op|rclone|chromium))(?:/|$)"
    r"|(?:^|/)\.(?:netrc|pgpass|my\.cnf|npmrc|pypirc|git-credentials|htpasswd|vault-token|s3cfg|boto|dockercfg"
    r"|(?:bash|zsh|python|psql|mysql|node_repl|sqlite)_history)$"
    r"|(?:^|/)\.env(?:\.(?!(?:example|sample|template|dist)$)[^/]*)?$"
    r"|(?:^|/)id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?$"
    r"|\.(?:pem|p12|pfx|kdbx?|jks|keystore|ppk|asc|gpg|ovpn|key)$"
    r"|(?:^|/)(?:credentials|secrets?|tokens?)(?:\.(?:json|ya?ml|toml|ini|txt|env))?$"
    r"|(?:^|/)etc/(?:g?shadow-?|sudoers(?:\.d(?:/.*)?)?|security/opasswd|krb5\.keytab|ssl/private(?:/.*)?"
    r"|ssh/ssh_host_[^/]*_key)$"
    r"|^/proc/[^/]+/(?:environ|mem|fd(?:/.*)?|root(?:/.*)?|maps|cmdline|task/.*)$|^/proc/kcore$|^/proc/keys$"
    r"|^/run/secrets(?:/|$)|^/var/run/secrets(?:/|$)|(?:docker|containerd|podman|crio)\.sock$"
    r"|^/dev/(?:mem|kmem|port|(?:sd|hd|vd|xvd|nvme|loop|dm-|mapper/|mmcblk|disk/)[^ ]*)$"
)
_NETWORK: Final = re.compile(r"^/dev/(?:tcp|udp)(?:/|$)")
_CONNECTION: Final = re.compile(r"^/dev/(?:tcp|udp)/|^/inet[46]?/")
_CODE: Final = re.compile(r"(?:^|/)authorized_keys$")
_DOTTED: Final = re.compile(r"(?:^|/)\.(?!\.?(?:/|$))")
"""Names with a leading dot: start-up files, repositories, settings. Programs read them unasked, and often run them."""
_FREE: Final = ("/workspace/", "/tmp/", "/var/tmp/")
_HARMLESS: Final = frozenset({"/dev/null", "/dev/tty"})
_OPEN: Final = frozenset({"/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"})
_SAMPLES: Final = (
    "~/.ssh/id_rsa", "~/.ssh/id_ed25519", "~/.ssh", "~/.aws/credentials", "~/.netrc", "~/.gnupg/secring.gpg",
    "/root/.ssh/id_rsa", "/home/user/.ssh/id_rsa", "/root/.ssh", "/root/.aws/credentials", "/etc/shadow",
    "/etc/sudoers", "/etc/gshadow", ".ssh/id_rsa", ".env", "./.env", "/workspace/.env", "/proc/self/environ",
    "/proc/1/environ", "/dev/sda", "/dev/mem", "/dev/tcp/host/80", "/run/secrets/token", "~/.docker/config.json",
    "/var/run/docker.sock", "x.pem", "x.key", "x.p12", "secrets.json",
)  # fmt: skip


def normal(text: str) -> str:
    """Return a path without `.`, `..` and doubled slashes, and with the home directory as `~`."""
    for home in ("$HOME", "${HOME}"):
        if text.startswith(home):
            text = "~" + text.removeprefix(home)
    path = posixpath.normpath(text)
    return path[1:] if path.startswith("//") else path


@lru_cache(4096)
def secret(text: str) -> bool:
    """Whether a word could name a secret or a device, including a file given as `name=path` or `@path`."""
    return any(_secret(piece) for piece in {text, *re.split(r"[=@,:]", text)} if piece)


def _secret(text: str) -> bool:
    path = normal(text)
    if _SECRET.search(path):
        return True

    # A path of which hardly anything is known could be every sample, so it is judged by its form.
    known = path.replace(GAP, "").replace(GLOB, "")
    if known == path or not known.strip("./-"):
        return _hidden(path)

    # A glob doesn't match a dot at the beginning of a name.
    pattern = re.escape(path)
    pattern = pattern.replace(re.escape(GAP), ".*")
    pattern = pattern.replace(re.escape(GLOB), r"(?!(?:(?<=/)|(?<!.))\.)[^/]*")
    return any(re.fullmatch(pattern, sample) for sample in _SAMPLES)


def _hidden(path: str) -> bool:
    """Whether a glob matches hidden files, or everything below a home or the root's directories."""
    if re.search(rf"(?:^|/)\.[{GAP}{GLOB}]", path):
        return True
    return path in (f"/{GLOB}/{GLOB}", f"/{GLOB}/{GLOB}{GLOB}{GLOB}")


def network(text: str) -> bool:
    """Whether a redirection to this path opens a connection."""
    return bool(_NETWORK.match(normal(text))) or bool(re.match(rf"^/dev/[{GAP}{GLOB}tu]", text))


def connection(text: str) -> bool:
    """Whether this names a connection: for bash in a redirection, for gawk as a file."""
    return _CONNECTION.match(normal(text)) is not None


def code(text: str) -> bool:
    """Whether writing here could make code run, or is outside the places that are free to write."""
    path = normal(text)
    if _CODE.search(path) or _DOTTED.search(path):
        return True
    if path.startswith("/"):
        return not path.startswith(_FREE) and path.rstrip("/") + "/" not in _FREE
    return path.startswith("~") and not path.startswith("~/")


def guarded(text: str) -> bool:
    """Whether this is a directory in which every relative path would have to be checked."""
    path = normal(text)
    if path == "~" or _DOTTED.search(path):
        return True
    return re.match(r"/(?:etc|proc|root|dev|run|sys|var/run|boot)(?:/|$)", path) is not None


def harmless(text: str) -> bool:
    """Whether a write here goes nowhere."""
    return text in _HARMLESS


def opened(text: str) -> bool:
    """Whether this names an output descriptor's target: the caller, or a file if the output was redirected."""
    return text in _OPEN


def passing(text: str) -> bool:
    """Whether this place contains only temporary files."""
    path = normal(text)
    return path.startswith(("/tmp/", "/var/tmp/")) and GAP not in path.split("/")[:3]
