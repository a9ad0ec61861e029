"""A module's description of itself, checked as the word of a hostile party.

A manifest reaches agents' contexts, people's screens, journals and the argument validation. So every text in it is
bounded and free of characters that could hide or reorder what is read. Every schema can be evaluated in bounded time:
no reference leaves it or forms a cycle, and no regular expression of the module runs in the core.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from google.protobuf.message import DecodeError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from iact.core.characters import HIDDEN
from iact.core.errors import ModuleFault
from iact.core.language.actions import CORE_ACTIONS
from iact.core.modules.schema import check_schema, clean
from iact.core.ports import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

PROTOCOL: Final = 1
LARGEST_MANIFEST: Final = 1 << 20


def _one_line(text: str) -> str:
    if "\n" in text or "\t" in text:
        raise ValueError("it must be one line without tabs")
    return clean(text)


def _documentation(text: str) -> str:
    if text.count("\n") >= 20:
        raise ValueError("it has more than 20 lines")
    if len(text.encode("utf-8", "replace")) > 4096:
        raise ValueError("it has more than 4 KiB")
    return clean(text)


def _alias(text: str) -> str:
    if text in CORE_ACTIONS:
        raise ValueError(f"{text} is an action of the core")
    return text


Line: TypeAlias = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
ModuleName: TypeAlias = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]{0,31}\z")]
FunctionName: TypeAlias = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]{0,47}\z")]
MediaType: TypeAlias = Annotated[
    str,
    Field(
        max_length=128,
        pattern=r"\A([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; ?[a-z0-9-]+=[A-Za-z0-9._-]+)*)?\z",
    ),
]
Egress: TypeAlias = Annotated[
    str, Field(max_length=262, pattern=r"\A(\*|[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[1-9][0-9]{0,4})\z")
]
"""A target, or "*": any host that a policy or a person allows while the module runs."""
Secret: TypeAlias = Annotated[str, Field(pattern=r"\A[A-Z][A-Z0-9_]{0,63}\z")]
Keyword: TypeAlias = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_one_line)]


class _Frozen(BaseModel):
    """Strict in types; fields of a newer minor version are ignored, so that old readers load new journals."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


@functools.lru_cache(maxsize=1024)
def _checked(schema: str) -> str:
    """A schema of parameters, without blanks. Its parameters stay in their order, which is that of positional words.

    Cached: checking takes milliseconds, and sessions meet the same schemas.
    """
    return json.dumps(check_schema(schema), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Function(_Frozen):
    """One function."""

    name: FunctionName
    alias: Annotated[str, Field(pattern=r"\A([A-Z][A-Z0-9_]{1,31})?\z"), AfterValidator(_alias)] = ""
    """A second name, for models that know it from elsewhere; empty: none."""
    summary: Line = ""
    """One line, which every agent reads."""
    documentation: Annotated[str, AfterValidator(_documentation)] = ""
    """What an agent reads that wants to call it."""
    schema_text: Annotated[str, AfterValidator(lambda text: _checked(text))]
    """JSON Schema of the parameters, as JSON without blanks."""
    body: str = ""
    """The parameter that is the body of a block; empty: none."""
    media_type: MediaType = ""
    """The type of its results; empty: text."""
    impact: Literal[0, 1, 2] = 0
    """How much it can change: nothing, files, anything."""
    idempotent: bool = False
    """Whether a second call changes nothing more."""
    exclusive: bool = False
    """Whether its calls for one agent run one after the other."""
    states: Annotated[tuple[FunctionName, ...], Field(max_length=32, strict=False)] = ()
    """The states of the module in which it is offered; empty: in all."""
    held: bool = False
    """Whether it answers from state that writing calls left in the module's process."""
    cache_key: str = ""
    """The text parameter that is the key for caching results with the session; empty: no caching."""
    timeout: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 0.0
    """In seconds; 0: the core decides."""

    @model_validator(mode="after")
    def _parameters(self) -> Self:
        if self.body and not self._takes_text(self.body):
            raise ValueError(f"its body parameter {self.body!r} is not a parameter of type string")
        if self.cache_key and not self._takes_text(self.cache_key):
            raise ValueError(f"its cache key {self.cache_key!r} is not a parameter of type string")
        return self

    def _takes_text(self, name: str) -> bool:
        """Whether there is a parameter of this name, for a text."""
        properties = self.parameters["properties"]
        assert isinstance(properties, dict)
        parameter = properties.get(name)
        return isinstance(parameter, dict) and parameter.get("type") == "string"

    @property
    def parameters(self) -> dict[str, JSON]:
        """JSON Schema of the parameters; has "properties"."""
        schema: dict[str, JSON] = json.loads(self.schema_text)
        return schema


class DeclaredState(_Frozen):
    """A state of the module's state machine."""

    name: FunctionName
    summary: Line = ""


class Needs(_Frozen):
    """What the module needs from its sandbox."""

    egress: Annotated[tuple[Egress, ...], Field(max_length=50, strict=False)] = ()
    """The hosts that it reaches."""
    secrets: Annotated[tuple[Secret, ...], Field(max_length=20, strict=False)] = ()
    """The names of the secrets that it is to be given."""
    workspace: Literal["none", "read", "write"] = "none"
    """What it does with the session's workspace."""
    memory_bytes: Annotated[int, Field(ge=0, lt=1 << 50)] = 0
    """0: the sandbox decides."""
    cpu: Annotated[float, Field(ge=0, le=1024, allow_inf_nan=False)] = 0.0
    """Processors; 0: the sandbox decides."""
    pids: Annotated[int, Field(ge=0, le=1 << 22)] = 0
    """Processes; 0: the sandbox decides."""
    own_instances: bool = False
    """Whether each agent has an instance of its own."""
    forgets: bool = False
    """Whether nothing of a call outlives it; a claim, which is believed of shipped modules."""


class Manifest(_Frozen):
    """A module's manifest, checked."""

    protocol: Literal[1] = PROTOCOL
    name: ModuleName
    version: Annotated[str, Field(max_length=64), AfterValidator(_one_line)] = ""
    purpose: Annotated[str, Field(max_length=600), AfterValidator(_one_line)] = ""
    """What it is for, in a sentence or two."""
    keywords: Annotated[tuple[Keyword, ...], Field(max_length=100, strict=False)] = ()
    """Words by which it is found."""
    functions: Annotated[tuple[Function, ...], Field(min_length=1, max_length=100, strict=False)]
    states: Annotated[tuple[DeclaredState, ...], Field(max_length=32, strict=False)] = ()
    """The states of its state machine, the initial one first."""
    needs: Needs = Needs()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _unique("function", [function.name for function in self.functions])
        _unique("alias", [function.alias for function in self.functions if function.alias])
        _unique("state", [state.name for state in self.states])

        states = {state.name for state in self.states}
        for function in self.functions:
            unknown = next((state for state in function.states if state not in states), None)
            if unknown is not None:
                raise ValueError(f"{function.name} is offered in {unknown!r}, which is not one of the states")
        return self

    def function(self, name: str) -> Function | None:
        """The function `name` (without the module's name)."""
        return next((function for function in self.functions if function.name == name), None)

    def to_json(self) -> str:
        """Canonical JSON: the same manifest always produces the same bytes."""
        return _canonical(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; checked as strictly as any other input.

        Raises:
            ModuleFault: it is not a valid manifest; the message says what is wrong.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise _fault(error) from error

    def digest(self) -> str:
        """SHA-256 hex over `to_json`."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_proto(cls, data: bytes) -> Self:
        """Read a serialized `iact.ext_module.v1.Manifest`.

        Raises:
            ModuleFault: it is not a valid manifest; the message says what is wrong.
        """
        if len(data) > LARGEST_MANIFEST:
            raise ModuleFault(
                f"The module's manifest has {len(data):,} bytes; the limit is {LARGEST_MANIFEST:,}."
            )

        try:
            message = pb.Manifest.FromString(data)
        except DecodeError as error:
            raise ModuleFault("The module's manifest is not a message of the protocol.") from error

        try:
            return cls.model_validate(_fields(message))
        except ValidationError as error:
            raise _fault(error) from error

    def to_proto(self) -> bytes:
        """The manifest serialized as `iact.ext_module.v1.Manifest`; contains only what was checked."""
        return _message(self).SerializeToString(deterministic=True)


# --- forms --------------------------------------------------------------------------------------------

_WORKSPACE: Final[Mapping[int, str]] = {
    pb.Needs.WORKSPACE_NONE: "none", pb.Needs.WORKSPACE_READ: "read", pb.Needs.WORKSPACE_WRITE: "write"
}  # fmt: skip


def _fields(message: pb.Manifest) -> dict[str, object]:
    needs = message.needs
    return {
        "protocol": message.protocol,
        "name": message.name,
        "version": message.version,
        "purpose": message.purpose,
        "keywords": tuple(message.keywords),
        "functions": tuple(_function_fields(function) for function in message.functions),
        "states": tuple({"name": state.name, "summary": state.summary} for state in message.states),
        "needs": {
            "egress": tuple(needs.egress),
            "secrets": tuple(needs.secrets),
            "workspace": _WORKSPACE.get(needs.workspace, "unknown"),
            "memory_bytes": needs.memory_bytes,
            "cpu": needs.cpu,
            "pids": needs.pids,
            "own_instances": needs.own_instances,
            "forgets": needs.forgets,
        },
    }


def _function_fields(function: pb.Function) -> dict[str, object]:
    return {
        "name": function.name,
        "alias": function.alias,
        "summary": function.summary,
        "documentation": function.documentation,
        "schema_text": function.parameters_schema,
        "body": function.body_parameter,
        "media_type": function.result_media_type,
        "impact": int(function.impact),
        "idempotent": function.idempotent,
        "exclusive": function.exclusive,
        "states": tuple(function.states),
        "timeout": function.default_timeout_ms / 1000,
        "held": function.held,
        "cache_key": function.cache_key,
    }


def _message(manifest: Manifest) -> pb.Manifest:
    needs = manifest.needs
    workspace = {name: number for number, name in _WORKSPACE.items()}[needs.workspace]
    return pb.Manifest(
        protocol=manifest.protocol,
        name=manifest.name,
        version=manifest.version,
        purpose=manifest.purpose,
        keywords=manifest.keywords,
        functions=[_function_message(function) for function in manifest.functions],
        states=[pb.State(name=state.name, summary=state.summary) for state in manifest.states],
        needs=pb.Needs(
            egress=needs.egress,
            secrets=needs.secrets,
            workspace=pb.Needs.Workspace.Name(workspace),
            memory_bytes=needs.memory_bytes,
            cpu=needs.cpu,
            pids=needs.pids,
            own_instances=needs.own_instances,
            forgets=needs.forgets,
        ),
    )


def _function_message(function: Function) -> pb.Function:
    return pb.Function(
        name=function.name,
        alias=function.alias,
        summary=function.summary,
        documentation=function.documentation,
        parameters_schema=function.schema_text,
        body_parameter=function.body,
        result_media_type=function.media_type,
        impact=pb.Impact.Name(function.impact),
        idempotent=function.idempotent,
        exclusive=function.exclusive,
        states=function.states,
        default_timeout_ms=round(function.timeout * 1000),
        held=function.held,
        cache_key=function.cache_key,
    )


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the {what} {name!r} stands there twice")


def _fault(error: ValidationError) -> ModuleFault:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "as a whole"
    message = HIDDEN.sub("\ufffd", first["msg"].removeprefix("Value error, "))[:300]
    return ModuleFault(f"The module's manifest is refused at {where}: {message}.")
