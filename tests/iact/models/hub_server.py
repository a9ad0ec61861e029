"""A server that speaks the protocol of the hub of models, as huggingface.co does.

A repository is listed at `/api/models/OWNER/NAME`. A file's address redirects to another host, which knows ranges and no
tokens. What does not exist is answered with 401, as by the hub to a stranger.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

COMMIT = "4c7c9b9d3f5d27e7a1e3b0a9b7c1a2d3e4f50617"


def gguf(*, name: str = "Tiny", licence: str = "mit", context: int = 2048, weights: bytes = b"") -> bytes:
    """A file with a right head and no model that could run."""
    said: list[tuple[str, str | int]] = [
        ("general.architecture", "llama"), ("general.name", name), ("general.license", licence),
        ("llama.context_length", context),
    ]  # fmt: skip
    head = [b"GGUF", struct.pack("<IQQ", 3, 0, len(said) + 2)]
    head += [_text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("b")]
    for key, value in said:
        head.append(_text(key))
        if isinstance(value, str):
            head.append(struct.pack("<I", 8) + _text(value))
        else:
            head.append(struct.pack("<II", 4, value))
    head.append(_text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1 << 40))
    return b"".join(head) + weights


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


@dataclass
class Hub:
    """What the server has, and what it was asked."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    lists_digests: bool = True
    """Whether the listing says sizes and digests; the headers of the redirection always do."""
    announced: dict[str, bytes] = field(default_factory=dict)
    """Files, by name, whose digest is announced as that of other bytes."""
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each of the next downloads ends."""
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    """Method, path and headers of each request, those of the other host with `cdn:` before the path."""
    url: str = ""

    def digest(self, repository: str, file: str) -> str:
        content = self.announced.get(file, self.repositories[repository][file])
        return hashlib.sha256(content).hexdigest()

    def ranges(self) -> list[str]:
        """The ranges of all downloads."""
        return [headers.get("Range", "") for method, path, headers in self.asked if path.startswith("cdn:")]


@contextmanager
def hub() -> Iterator[Hub]:
    made = Hub()
    with (
        _serving(_storage(made), "localhost") as storage,
        _serving(_front(made, storage), "127.0.0.1") as url,
    ):
        made.url = url
        yield made


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], host: str) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *told: object) -> None:
        pass

    def reply(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _front(made: Hub, storage: str) -> type[BaseHTTPRequestHandler]:
    class Front(_Quiet):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            made.asked.append((self.command, path, dict(self.headers)))
            if path.startswith("/api/models/"):
                self._list(path.removeprefix("/api/models/"))
            else:
                self._resolve(path)

        do_HEAD = do_GET

        def _list(self, repository: str) -> None:
            if not self._admitted(repository):
                return
            files = made.repositories[repository]
            siblings: list[dict[str, object]] = []
            for name, content in files.items():
                sibling: dict[str, object] = {"rfilename": name}
                if made.lists_digests:
                    digest = made.digest(repository, name)
                    sibling |= {
                        "size": len(content), "blobId": "0" * 40,
                        "lfs": {"sha256": digest, "size": len(content), "pointerSize": 135},
                    }  # fmt: skip
                siblings.append(sibling)
            about = {
                "id": repository, "sha": COMMIT, "private": False, "gated": False, "siblings": siblings,
                "tags": ["gguf", f"license:{made.licences.get(repository, 'apache-2.0')}"],
            }  # fmt: skip
            self.reply(200, {"Content-Type": "application/json"}, json.dumps(about).encode())

        def _admitted(self, repository: str) -> bool:
            if repository not in made.repositories:
                self.reply(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
                return False
            if repository in made.gated and self.headers.get("Authorization") != "Bearer mine":
                self.reply(401, {"X-Error-Code": "GatedRepo"})
                return False
            return True

        def _resolve(self, path: str) -> None:
            repository, _, rest = path.lstrip("/").partition("/resolve/")
            revision, _, file = rest.partition("/")
            if not self._admitted(repository):
                return
            content = made.repositories[repository].get(file)
            if content is None or revision not in (COMMIT, "main"):
                self.reply(404, {"X-Error-Code": "EntryNotFound"})
                return
            linked = {
                "Location": f"{storage}/{repository}/{file}", "X-Repo-Commit": COMMIT,
                "X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{made.digest(repository, file)}"',
            }  # fmt: skip
            self.reply(302, linked)

    return Front


def _storage(made: Hub) -> type[BaseHTTPRequestHandler]:
    class Storage(_Quiet):
        def do_GET(self) -> None:
            path = unquote(self.path)
            made.asked.append((self.command, f"cdn:{path}", dict(self.headers)))
            owner, name, file = path.lstrip("/").split("/", 2)
            content = made.repositories[f"{owner}/{name}"][file]
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.reply(416, {})
                return
            body = content[start:]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: made.breaks.pop(0)] if made.breaks else body)
            self.close_connection = True

    return Storage
