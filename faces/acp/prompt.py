"""The content of a client's prompt: its text, and attached files, which the root gets as variables."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from iact.core.errors import UsageError
from iact.faces.message import MessageFile

Block: TypeAlias = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message and its files."""

    text: str
    files: tuple[MessageFile, ...]


def read_prompt(blocks: Sequence[Block]) -> Prompt:
    """Read a prompt from its blocks. Links become part of the text; embedded content becomes a file.

    Raises:
        UsageError: a block can't be read, or the prompt is empty.
    """
    text: list[str] = []
    files: list[MessageFile] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                text.append(block.text)
            case ResourceContentBlock():
                text.append(f"[{block.title or block.name}]({block.uri})")
            case EmbeddedResourceContentBlock():
                files.append(_resource(block, len(files) + 1))
                text.append(f"({files[-1].name}, from {block.resource.uri})")
            case _:
                files.append(_media(block, len(files) + 1))
                text.append(f"({files[-1].name})")
    said = "\n\n".join(one for one in text if one.strip())
    if not said:
        raise UsageError("The prompt is empty.")
    return Prompt(said, tuple(files))


def _resource(block: EmbeddedResourceContentBlock, count: int) -> MessageFile:
    resource = block.resource
    name = unquote(urlsplit(resource.uri).path).rstrip("/").rpartition("/")[2] or f"resource-{count}"
    if isinstance(resource, TextResourceContents):
        return MessageFile(name, resource.mime_type or "text/plain", resource.text.encode())
    return MessageFile(name, resource.mime_type or "application/octet-stream", _bytes(resource.blob, name))


def _media(block: ImageContentBlock | AudioContentBlock, count: int) -> MessageFile:
    name = f"{block.type}-{count}{mimetypes.guess_extension(block.mime_type) or ''}"
    return MessageFile(name, block.mime_type, _bytes(block.data, name))


def _bytes(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise UsageError(f"The content of {name} is not base64.") from error
