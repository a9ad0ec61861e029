"""The OpenAPI description of this API, for clients and checkers."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from iact.faces.failure import FAILURES
from iact.faces.responses.wire import CreateCompletion, CreateResponse

_BEFORE: Final = {
    401: "nobody that is known",
    403: "they may not",
    404: "there is no such response or model",
    413: "the request is too large",
}
"""What is refused before any work begins."""


def _errors() -> dict[str, str]:
    """What each status of an error means: those of `_BEFORE`, and of every kind of failure."""
    found = {status: [why] for status, why in _BEFORE.items()}
    for kind in FAILURES:
        found.setdefault(kind.status, []).append(f"{kind.code}: {kind.when}")
    return {str(status): "; ".join(whys) for status, whys in sorted(found.items())}


def description() -> dict[str, Any]:
    """Return an OpenAPI 3.1 document."""
    models = [(CreateResponse, "validation"), (CreateCompletion, "validation")]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    response, completion = _answer("Response", "response"), _answer("ChatCompletion", "chat.completion")
    identity = {
        "name": "identity",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "iact as a model", "version": version("iact")},
        "security": [{"bearer": []}],
        "paths": {
            "/v1/models": {
                "get": _operation("List the one model", {"type": "object", "required": ["object", "data"]})
            },
            "/v1/models/{name}": {
                "parameters": [{**identity, "name": "name"}],
                "get": _operation("The model of a name", {"type": "object", "required": ["id", "object"]}),
            },
            "/v1/responses": {
                "post": _operation(
                    "Say something, in a new session or an earlier one", response, "CreateResponse"
                )
            },
            "/v1/responses/{identity}": {
                "parameters": [identity],
                "get": _operation(
                    "What there is of a response, whole or as a stream", response, streams=True
                ),
            },
            "/v1/responses/{identity}/cancel": {
                "parameters": [identity],
                "post": _operation("End the work on a response", response),
            },
            "/v1/chat/completions": {"post": _operation("Go on with a chat", completion, "CreateCompletion")},
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **schemas.get("$defs", {}),
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": {
                            "type": "object",
                            "required": ["message", "type", "param", "code"],
                            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
                        }
                    },
                },
            },
        },
    }


def _answer(name: str, kind: str) -> dict[str, Any]:
    return {
        "title": name,
        "type": "object",
        "required": ["id", "object", "model"],
        "properties": {"id": {"type": "string"}, "object": {"const": kind}, "model": {"type": "string"}},
    }


def _operation(
    summary: str, answer: dict[str, Any], body: str = "", *, streams: bool = False
) -> dict[str, Any]:
    """An operation. `streams`: whether a parameter of the query asks for a stream; with a body, a field of it does."""
    errors = {
        status: {
            "description": why,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, why in _errors().items()
    }
    content: dict[str, Any] = {"application/json": {"schema": answer}}
    if body or streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": {"description": "done", "content": content}, **errors},
    }
    if streams:
        operation["parameters"] = [{"name": "stream", "in": "query", "schema": {"type": "boolean"}}]
    if body:
        schema = {"$ref": f"#/components/schemas/{body}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation
