"""nginx and Caddy in front of the server, with TLS: the configurations of `docs/how-to/deploy.md` with other ports."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from iact.setup.proxies import CADDY, NGINX
from tests.acceptance.product import ROOT

PAGE: Final = ROOT / "docs" / "how-to" / "deploy.md"
NAME: Final = "iact.example.org"


def own_address() -> str:
    """An address of this machine that is not loopback. A server sees its clients as another machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.77", 9))  # nothing is sent
        return str(one.getsockname()[0])


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def certificate(folder: Path) -> None:
    """Create a self-signed certificate for the name of the page."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "certificate.pem", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def trusting(folder: Path) -> ssl.SSLContext:
    """The TLS context of clients that trust only that certificate."""
    return ssl.create_default_context(cafile=str(folder / "certificate.pem"))


def from_page(language: str, put_in: Mapping[str, str]) -> str:
    """A configuration from the page, with some words replaced. Each of them must occur."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, language
    text = found[1]
    for old, new in put_in.items():
        assert old in text, (language, old)
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, port: int, server: str) -> list[str]:
    inside = from_page(
        "nginx",
        {
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "/etc/ssl/iact.pem": f"{folder}/certificate.pem",
            "/etc/ssl/iact.key": f"{folder}/key.pem",
            "10.0.0.2:8421": server,
        },
    )
    kept = " ".join(
        f"{one}_temp_path {folder}/{one};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = (
        f"daemon off; pid {folder}/nginx.pid; error_log stderr;\nevents {{}}\n"
        f"http {{ access_log off; {kept}\n{inside}\n}}\n"
    )
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    return [str(NGINX), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def _caddy(folder: Path, port: int, server: str) -> list[str]:
    inside = from_page(
        "caddyfile",
        {
            "iact.example.org {": f"{{\n\tadmin off\n\tauto_https off\n\tstorage file_system {folder}/caddy\n}}\n\n"
            f"https://{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/certificate.pem {folder}/key.pem",
            "10.0.0.2:8421": server,
        },
    )
    (folder / "Caddyfile").write_text(inside, encoding="utf-8")
    return [str(CADDY), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


PROXIES: Final[Mapping[str, Callable[[Path, int, str], list[str]]]] = {"nginx": _nginx, "caddy": _caddy}


@contextmanager
def proxy(which: str, folder: Path, port: int, server: str) -> Iterator[None]:
    """Run a proxy that listens on `port` with TLS and forwards to `server`, an address with its port."""
    command = PROXIES[which](folder, port, server)
    with (folder / "proxy.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"HOME": str(folder)})
        try:
            _until_listening(process, port, folder / "proxy.log")
            yield
        finally:
            process.terminate()
            process.wait(300)


def _until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 30
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
