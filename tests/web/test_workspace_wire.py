"""The files of a session over the wire: what there is and was, what changed, what one holds, and fetching them."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

from iact.core.records.record import Record
from iact.core.stored.fork import STORE
from iact.core.stored.store import SessionStore
from iact.core.stored.workspace import find_version
from iact.sandbox.workspace.versions import GitVersions
from iact.web.server import WebServer
from tests.web.dialling import Message, cookie, dial, get, http, run, send, until
from tests.web.fake import FakeRuntime, FakeSession
from tests.web.test_streaming import unchunked

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


class KeptSession(FakeSession):
    """A session that restores a file by the kept versions, as a real one does."""

    async def restore(self, version: str, path: str = "") -> Record:
        directory = self.journal.parent
        kept = GitVersions()
        wanted = find_version(self.records(), version)
        result = kept.with_file(directory / "workspace", directory / STORE, path, wanted)
        kept.restore(directory / "workspace", directory / STORE, result, path=path)
        return await super().restore(result, path)


def worked(folder: Path) -> tuple[FakeRuntime, FakeSession]:
    """A session with three versions of its files, and a file since."""
    directory = folder / "sessions" / "s"
    workspace, kept = directory / "workspace", GitVersions()
    workspace.mkdir(parents=True)
    session = KeptSession("s", journal=directory / "journal.md")
    session.append("open")

    def call(agent: str) -> None:
        version = kept.keep(workspace, directory / STORE)
        session.append("result", agent, function="shell.run", status="ok", version=version)

    (workspace / "notes.md").write_text("# One\n")
    call("/")
    (workspace / "out").mkdir()
    (workspace / "out" / "plot.png").write_bytes(PNG)
    (workspace / "out" / "t.csv").write_text("year,sum\n2024,<b>3</b>\n2025,\u202e4\n")
    (workspace / "away").symlink_to("/etc/passwd")
    call("/coder")
    (workspace / "notes.md").write_text("# Two\n")
    (workspace / "page.html").write_text("<script>alert(1)</script>")
    call("/coder")
    (workspace / "late.bin").write_bytes(b"\0\xff")
    runtime = FakeRuntime(session)
    runtime.store = SessionStore(folder, versions=GitVersions())
    return runtime, session


def test_files_as_they_are_and_as_they_were(tmp_path: Path) -> None:
    runtime, _ = worked(tmp_path)

    async def test() -> None:
        async with WebServer(runtime) as server, dial(server) as client:
            number = 0

            async def ask(**message: object) -> Message:
                nonlocal number
                number += 1
                await send(client, id=number, **message)
                return (await until(client, id=number))[-1]

            async def fetched(answer: Message) -> bytes:
                _, headers, body = await http(
                    server, get(server, answer["href"], Cookie=await cookie(server))
                )
                assert headers["content-type"] == "application/octet-stream"
                assert headers["content-disposition"].startswith("attachment")
                content, whole = unchunked(body)
                assert whole
                return content

            assert (await ask(type="files"))["code"] == "usage"
            await ask(type="hello", session="s")
            now = await ask(type="files")
            assert [(one["path"], one["kind"], one.get("n")) for one in now["list"]] == [
                ("away", "link", 3), ("late.bin", "file", None), ("notes.md", "file", 4),
                ("out/plot.png", "file", 3), ("out/t.csv", "file", 3), ("page.html", "file", 4),
            ]  # fmt: skip
            assert (now["n"], now["more"], now["folder"]) == (4, 0, "")
            then = await ask(type="files", at=2)
            assert [(one["path"], one["n"]) for one in then["list"]] == [("notes.md", 2)]
            assert "There is no record 99" in (await ask(type="files", at=99))["message"]

            changes = (await ask(type="files.changes"))["list"]
            assert [(one["n"], one["agent"], len(one["paths"])) for one in changes] == [
                (4, "/coder", 2), (3, "/coder", 3), (2, "/", 1),
            ]  # fmt: skip
            assert changes[0]["paths"][0] == {"path": "notes.md", "kind": "modify"}
            assert (await ask(type="files.changes", at=3))["list"] == changes[1:]

            # Each is shown as what it is; nothing is shown as a page.
            assert (await ask(type="file", path="notes.md", at=3))["text"] == "# One\n"
            assert (await ask(type="file", path="notes.md"))["text"] == "# Two\n"
            page = await ask(type="file", path="page.html")
            assert (page["show"], page["text"]) == ("text", "<script>alert(1)</script>")
            plot = await ask(type="file", path="out/plot.png")
            assert (plot["show"], plot["media"]) == ("image", "image/png")
            table = await ask(type="file", path="out/t.csv")
            assert table["show"] == "table"
            assert table["rows"] == [["year", "sum"], ["2024", "<b>3</b>"], ["2025", "‹U+202E›4"]]
            assert (await ask(type="file", path="late.bin"))["show"] == "binary"
            assert (await ask(type="file", path="late.bin", at=4))["code"] == "usage"
            for at in (None, 3):
                link = await ask(type="file", path="away", at=at)
                assert (link["show"], link["target"]) == ("link", "/etc/passwd")
                assert "is not a file" in (await ask(type="file.download", path="away", at=at))["message"]
                assert (await ask(type="file", path="away/x", at=at))["code"] == "usage"

            # Words of a text that was written when they were files, and no others.
            words = [
                "notes.md",
                "./out/t.csv",
                "/workspace/out/plot.png",
                "page.html",
                "away",
                "out",
                "../s",
                "/etc/passwd",
            ]
            found = await ask(type="files.find", texts=[{"at": n, "words": words} for n in (1, 2, 3)])
            assert found["list"] == [
                {"at": 2, "shown": 2, "files": {"notes.md": "notes.md"}},
                {"at": 3, "shown": 3, "files": {
                    "notes.md": "notes.md", "./out/t.csv": "out/t.csv", "/workspace/out/plot.png": "out/plot.png",
                }},
            ]  # fmt: skip

            compared = await ask(type="file.diff", path="notes.md", since=2)
            assert (compared["added"], compared["removed"]) == (1, 1)
            assert "-# One\n+# Two" in compared["text"]
            assert (await ask(type="file.diff", path="notes.md", since=2, at=3))["text"] == ""

            assert await fetched(await ask(type="file.download", path="notes.md", at=2)) == b"# One\n"
            assert await fetched(await ask(type="file.download", path="late.bin")) == b"\0\xff"
            for at, names in ((None, 5), (3, 3)):
                everything = await ask(type="files.download", at=at)
                assert (everything["count"], everything["left_out"]) == (names, 1)
                with ZipFile(io.BytesIO(await fetched(everything))) as archive:
                    assert archive.testzip() is None
                    assert len(archive.namelist()) == names
                    assert archive.read("notes.md") == (b"# Two\n" if at is None else b"# One\n")
            assert (await ask(type="files.download", at=1))["code"] == "usage"

    run(test)


def test_a_large_file_is_shown_in_part_and_fetched_whole(tmp_path: Path) -> None:
    runtime, session = worked(tmp_path)
    line = "ä" * 99 + "\n"
    (session.journal.parent / "workspace" / "long.txt").write_text(line * 20_000)

    async def test() -> None:
        async with WebServer(runtime) as server, dial(server) as client:
            await send(client, type="hello", session="s")
            await send(client, type="file", path="long.txt", id=1)
            shown = (await until(client, id=1))[-1]
            assert (shown["show"], shown["size"]) == ("large", 20_000 * 199)
            assert shown["text"].startswith(line)
            assert len(shown["text"]) <= 200_000
            await send(client, type="file.download", path="long.txt", id=2)
            href = (await until(client, id=2))[-1]["href"]
            _, _, body = await http(server, get(server, href, Cookie=await cookie(server)))
            assert unchunked(body) == ((line * 20_000).encode(), True)

    run(test)
