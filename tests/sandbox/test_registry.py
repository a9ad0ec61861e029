"""Images are pushed by the machine's engine to a registry, which is the tests' own and speaks the distribution's protocol."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from iact.sandbox.docker import image
from tests.acceptance.product import Product


@dataclass
class Registry:
    """What was pushed: names of manifests, and digests of blobs. `open`: whether it lets anybody in."""

    port: int = 0
    open: bool = True
    manifests: list[str] = field(default_factory=list)
    blobs: set[str] = field(default_factory=set)
    uploads: dict[str, bytes] = field(default_factory=dict)


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def _answer(self, status: int, **headers: str) -> None:
            self.send_response(status if registry.open else 403)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def do_GET(self) -> None:
            self._answer(200)

        def do_HEAD(self) -> None:
            digest = self.path.rpartition("/")[2]
            self._answer(200 if digest in registry.blobs else 404, Docker_Content_Digest=digest)

        def do_POST(self) -> None:
            number = uuid.uuid4().hex
            registry.uploads[number] = b""
            self._body()
            self._answer(202, Location=f"{self.path.partition('?')[0].rstrip('/')}/{number}", Range="0-0")

        def do_PATCH(self) -> None:
            path = self.path.partition("?")[0]
            number = path.rpartition("/")[2]
            registry.uploads[number] += self._body()
            self._answer(202, Location=path, Range=f"0-{len(registry.uploads[number]) - 1}")

        def do_PUT(self) -> None:
            path, _, query = self.path.partition("?")
            content = self._body()
            if "/manifests/" in path:
                registry.manifests.append(path.removeprefix("/v2/").replace("/manifests/", ":"))
            else:
                content = registry.uploads.pop(path.rpartition("/")[2]) + content
            digest = "sha256:" + hashlib.sha256(content).hexdigest()
            if query:
                assert digest == query.partition("digest=")[2].replace("%3A", ":"), (
                    "what came is what was announced"
                )
                registry.blobs.add(digest)
            self._answer(201, Location=path, Docker_Content_Digest=digest)

    return Handler


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(made)) as server:
        made.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


def test_the_image_that_nodes_will_ask_for_is_pushed_and_a_refusal_is_told(
    registry: Registry, tmp_path: Path
) -> None:
    place = f"127.0.0.1:{registry.port}/iact"
    product = Product.at(tmp_path / "data", IACT_KUBERNETES_IMAGES=place)
    name = f"{place}/{image.reference()}"
    try:
        ran = product.run("image", "push", seconds=600)
        assert (ran.status, ran.stdout.split()) == (0, [name]), ran
        assert registry.manifests == [f"iact/{image.reference()}"]
        assert len(registry.blobs) >= 2, "its configuration and its layers"
        registry.open = False
        refused = product.run("image", "push", seconds=600)
        assert refused.status == 1
        assert "can't be pushed" in refused.stderr
        assert "no module 'nonsense'" in product.run("image", "push", "--module", "nonsense").sentence
        assert "IACT_KUBERNETES_IMAGES" in Product.at(tmp_path / "data").run("image", "push").sentence
    finally:
        client = docker.from_env()
        with suppress(ImageNotFound):
            client.images.remove(name)
        client.close()
