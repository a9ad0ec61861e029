"""A session's contents as resources: its journal, its variables and its files.

    iact://session/ID/journal                   the journal, as it is on disk
    iact://session/ID/variables                 the list of variables, as JSON with the address of each
    iact://session/ID/variables/AGENT/NAME      one variable; AGENT is left out for the root
    iact://session/ID/files                     the list of files in the workspace, as JSON with the address of each
    iact://session/ID/files/PATH                one file

Reading opens no session: for a session at rest the journal is read, and for a running session its current state.
"""

from __future__ import annotations

import asyncio
import base64
import json
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from mcp_types import (
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.stored.file_browser import FileBrowser
from iact.core.stored.listing import SessionInfo
from iact.core.views.view import View
from iact.faces.mcp.results import SCHEME

_PAGE: Final = 30
"""The maximum number of sessions on a page of the list."""
_LARGEST: Final = 16 << 20
"""The maximum number of bytes of a resource, which is sent whole."""
_JSON: Final = "application/json"
_MARKDOWN: Final = "text/markdown"

TEMPLATES: Final = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="journal", title="The journal of a session", uri_template=f"{SCHEME}/{{session}}/journal",
            description="everything that happened, as Markdown", mime_type=_MARKDOWN,
        ),
        ResourceTemplate(
            name="variable", title="A variable of a session", uri_template=f"{SCHEME}/{{session}}/variables/{{+name}}",
            description="the agent's path, if it is not the root's, and the variable's name",
        ),
        ResourceTemplate(
            name="file", title="A file of a session", uri_template=f"{SCHEME}/{{session}}/files/{{+path}}",
            description="a file in the session's workspace",
        ),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Stored:
    """The current state of a session, open or not."""

    id: str
    view: View
    records: Sequence[Record]
    browser: FileBrowser


async def listed(runtime: Runtime, cursor: str | None) -> ListResourcesResult:
    """Return a page of the sessions' resources, newest session first. Work between two pages does not change the order.

    Raises:
        UsageError: the cursor does not belong to this list.
    """
    infos = sorted(await asyncio.to_thread(runtime.store.sessions), key=_place, reverse=True)
    if cursor is not None:
        created, _, identity = cursor.partition(" ")
        if not identity:
            raise UsageError("That is no cursor of this list; begin again without one.")
        infos = [one for one in infos if _place(one) < (created, identity)]
    page, more = infos[:_PAGE], len(infos) > _PAGE
    return ListResourcesResult(
        resources=[resource for info in page for resource in _of(info)],
        next_cursor=" ".join(_place(page[-1])) if more else None,
    )


def _place(info: SessionInfo) -> tuple[str, str]:
    return info.created, info.id


def _of(info: SessionInfo) -> list[Resource]:
    title = info.title or info.id
    kinds = (("journal", "Journal", _MARKDOWN), ("variables", "Variables", _JSON), ("files", "Files", _JSON))
    return [
        Resource(
            uri=f"{SCHEME}/{info.id}/{kind}",
            name=f"{info.id}/{kind}",
            title=f"{name}: {title}",
            mime_type=media,
        )
        for kind, name, media in kinds
    ]


async def read(runtime: Runtime, uri: str) -> ReadResourceResult:
    """Read one resource.

    Raises:
        UsageError: the resource does not exist, or is too large to be sent.
        JournalError, WorkspaceError: the resource can't be read.
    """
    identity, _, rest = uri.removeprefix(f"{SCHEME}/").partition("/")
    kind, _, name = rest.partition("/")
    if not uri.startswith(f"{SCHEME}/") or not runtime.store.holds(identity):
        raise UsageError(f"There is no resource {uri[:200]!r}; ask for the list of resources.")
    if kind == "journal" and not name:
        path = runtime.store.path_of(identity) / "journal.md"
        _check(path.stat().st_size, "The journal", "iact journal html shows it")
        return _text(uri, _MARKDOWN, await asyncio.to_thread(path.read_text, "utf-8", "replace"))
    stored = await asyncio.to_thread(_stored, runtime, identity)
    match kind, bool(name):
        case "variables", False:
            return _text(uri, _JSON, _dumped(_variables(stored)))
        case "variables", True:
            agent, _, variable = f"/{unquote(name)}".rpartition("/")
            found = stored.view.variable(agent or "/", variable)
            _check(found.size, f"The variable ${variable}", "an agent can be asked for a part of it")
            data = await asyncio.to_thread(found.load)
            return _content(uri, found.media, data, text=found.is_text)
        case "files", False:
            return _text(uri, _JSON, _dumped(await asyncio.to_thread(_files, stored)))
        case "files", True:
            return await asyncio.to_thread(_file, stored, uri, unquote(name))
    raise UsageError(f"There is no resource {uri[:200]!r}; ask for the list of resources.")


def _stored(runtime: Runtime, identity: str) -> _Stored:
    session = runtime.opened.get(identity)
    if session is not None:
        view, records, overlay, foreign = session.view, session.records(), session.effects.folder, False
    else:
        replay = runtime.store.read(identity)
        view, records, overlay, foreign = replay.view, replay.records, None, bool(replay.foreign)
    browser = runtime.store.browser(
        runtime.store.path_of(identity), view.workspace, overlay=overlay, foreign=foreign
    )
    return _Stored(identity, view, records, browser)


def _variables(stored: _Stored) -> list[JSON]:
    return [
        {
            "uri": f"{SCHEME}/{stored.id}/variables/{quote(f'{node.path}/{one.name}'.lstrip('/'))}",
            "agent": node.path,
            "name": one.name,
            "mimeType": one.media,
            "size": one.size,
        }
        for node in stored.view.nodes()
        if node.kind == "agent"
        for one in stored.view.variables(node.path)
    ]


def _files(stored: _Stored) -> list[JSON]:
    found = stored.browser.look(stored.records, now=True)
    return [
        {"uri": f"{SCHEME}/{stored.id}/files/{quote(one.path)}", "path": one.path, "size": one.size}
        for one in found.files
        if one.type == "file"
    ]


def _file(stored: _Stored, uri: str, path: str) -> ReadResourceResult:
    found = stored.browser.find(stored.records, path, now=True)
    if found.type != "file":
        raise UsageError(f"{path[:200]!r} is no file but a {found.type}, so it can't be read.")
    _check(found.size, f"The file {path[:200]!r}", "iact session export has it")
    media = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return _content(uri, media, b"".join(stored.browser.content(found)), text=True)


def _content(uri: str, media: str, data: bytes, *, text: bool) -> ReadResourceResult:
    """Return bytes as text if they are valid text, otherwise as a blob."""
    if text:
        try:
            return _text(uri, media, data.decode())
        except UnicodeDecodeError:
            pass
    blob = base64.b64encode(data).decode()
    return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type=media, blob=blob)])


def _text(uri: str, media: str, text: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=media, text=text)])


def _dumped(rows: list[JSON]) -> str:
    return json.dumps(rows, ensure_ascii=False, indent=1)


def _check(size: int, what: str, instead: str) -> None:
    if size > _LARGEST:
        raise UsageError(
            f"{what} has {size} bytes, more than the {_LARGEST} that can be sent at once; {instead}."
        )
