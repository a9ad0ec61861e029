"""The result of an MCP tool, as text, artifacts and data."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ext_modules.sdk.values import JSON, Value


@dataclass(slots=True)
class Delivery:
    """A tool's result."""

    text: str = ""
    artifacts: list[Value] = field(default_factory=list)
    structured: JSON = None
    """Its structured content; None: there is none."""
    failed: bool = False
    """Whether the tool reports that it failed."""


def delivery_of(result: Mapping[str, JSON]) -> Delivery:
    """Convert the result of a `tools/call`."""
    delivery = Delivery(structured=result.get("structuredContent"), failed=result.get("isError") is True)
    content = result.get("content")
    if isinstance(content, list):
        texts = [_take(block, delivery) for block in content]
        delivery.text = "\n".join(text for text in texts if text)

    # For clients without structured content, servers send the same twice: only one is kept.
    if _wraps(delivery.structured, delivery.text):
        delivery.structured = None
    elif delivery.structured is not None and _same(delivery.text, delivery.structured):
        delivery.text = ""
    return delivery


def _take(block: JSON, delivery: Delivery) -> str:
    """Return the text of a block; add its bytes to the artifacts."""
    if not isinstance(block, dict):
        return ""

    match block.get("type"):
        case "text":
            return _text(block, "text")
        case "image" | "audio":
            return _bytes(block, "data", delivery, name="")
        case "resource_link":
            return f"{_text(block, 'name')}: {_text(block, 'uri')} {_text(block, 'description')}".strip()
        case "resource":
            return _resource(block.get("resource"), delivery)
        case other:
            return f"[content of the kind {str(other)[:40]}, which is not known here]"


def _resource(resource: JSON, delivery: Delivery) -> str:
    if not isinstance(resource, dict):
        return ""
    if "text" in resource:
        return _text(resource, "text")
    return _bytes(resource, "blob", delivery, name=_text(resource, "uri").rpartition("/")[2])


def _bytes(block: Mapping[str, JSON], key: str, delivery: Delivery, *, name: str) -> str:
    media = _text(block, "mimeType") or "application/octet-stream"
    try:
        delivery.artifacts.append(Value(base64.b64decode(_text(block, key), validate=True), media, name))
    except binascii.Error:
        return f"[content of the type {media} that is not base64]"
    return ""


def _text(block: Mapping[str, JSON], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


def _wraps(structured: JSON, text: str) -> bool:
    """Whether `structured` is `{"result": …}` around what `text` says, the form of results that are not objects."""
    if not isinstance(structured, dict) or list(structured) != ["result"] or not text:
        return False

    result = structured["result"]
    if isinstance(result, list):
        lines = [item if isinstance(item, str) else json.dumps(item) for item in result]
        return text == "\n".join(lines)
    return result == text or _same(text, result)


def _same(text: str, structured: JSON) -> bool:
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False
