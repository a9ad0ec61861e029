from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Impact(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMPACT_OBSERVE: _ClassVar[Impact]
    IMPACT_OPERATE: _ClassVar[Impact]
    IMPACT_OVERRIDE: _ClassVar[Impact]
IMPACT_OBSERVE: Impact
IMPACT_OPERATE: Impact
IMPACT_OVERRIDE: Impact

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Manifest(_message.Message):
    __slots__ = ("protocol", "name", "version", "purpose", "keywords", "functions", "states", "needs")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    name: str
    version: str
    purpose: str
    keywords: _containers.RepeatedScalarFieldContainer[str]
    functions: _containers.RepeatedCompositeFieldContainer[Function]
    states: _containers.RepeatedCompositeFieldContainer[State]
    needs: Needs
    def __init__(self, protocol: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., purpose: _Optional[str] = ..., keywords: _Optional[_Iterable[str]] = ..., functions: _Optional[_Iterable[_Union[Function, _Mapping[str, object]]]] = ..., states: _Optional[_Iterable[_Union[State, _Mapping[str, object]]]] = ..., needs: _Optional[_Union[Needs, _Mapping[str, object]]] = ...) -> None: ...

class Function(_message.Message):
    __slots__ = ("name", "alias", "summary", "documentation", "parameters_schema", "body_parameter", "result_media_type", "impact", "idempotent", "exclusive", "states", "default_timeout_ms", "held", "cache_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTATION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    BODY_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    RESULT_MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    IMPACT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENT_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    CACHE_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    alias: str
    summary: str
    documentation: str
    parameters_schema: str
    body_parameter: str
    result_media_type: str
    impact: Impact
    idempotent: bool
    exclusive: bool
    states: _containers.RepeatedScalarFieldContainer[str]
    default_timeout_ms: int
    held: bool
    cache_key: str
    def __init__(self, name: _Optional[str] = ..., alias: _Optional[str] = ..., summary: _Optional[str] = ..., documentation: _Optional[str] = ..., parameters_schema: _Optional[str] = ..., body_parameter: _Optional[str] = ..., result_media_type: _Optional[str] = ..., impact: _Optional[_Union[Impact, str]] = ..., idempotent: _Optional[bool] = ..., exclusive: _Optional[bool] = ..., states: _Optional[_Iterable[str]] = ..., default_timeout_ms: _Optional[int] = ..., held: _Optional[bool] = ..., cache_key: _Optional[str] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("name", "summary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    summary: str
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...

class Needs(_message.Message):
    __slots__ = ("egress", "secrets", "workspace", "memory_bytes", "cpu", "pids", "own_instances", "forgets")
    class Workspace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        WORKSPACE_NONE: _ClassVar[Needs.Workspace]
        WORKSPACE_READ: _ClassVar[Needs.Workspace]
        WORKSPACE_WRITE: _ClassVar[Needs.Workspace]
    WORKSPACE_NONE: Needs.Workspace
    WORKSPACE_READ: Needs.Workspace
    WORKSPACE_WRITE: Needs.Workspace
    EGRESS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    OWN_INSTANCES_FIELD_NUMBER: _ClassVar[int]
    FORGETS_FIELD_NUMBER: _ClassVar[int]
    egress: _containers.RepeatedScalarFieldContainer[str]
    secrets: _containers.RepeatedScalarFieldContainer[str]
    workspace: Needs.Workspace
    memory_bytes: int
    cpu: float
    pids: int
    own_instances: bool
    forgets: bool
    def __init__(self, egress: _Optional[_Iterable[str]] = ..., secrets: _Optional[_Iterable[str]] = ..., workspace: _Optional[_Union[Needs.Workspace, str]] = ..., memory_bytes: _Optional[int] = ..., cpu: _Optional[float] = ..., pids: _Optional[int] = ..., own_instances: _Optional[bool] = ..., forgets: _Optional[bool] = ...) -> None: ...

class InvokeRequest(_message.Message):
    __slots__ = ("call_id", "session", "agent", "function", "arguments_json", "values", "timeout_ms", "carried", "cached")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping[str, object]]] = ...) -> None: ...
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session: str
    agent: str
    function: str
    arguments_json: str
    values: _containers.MessageMap[str, Value]
    timeout_ms: int
    carried: bytes
    cached: Value
    def __init__(self, call_id: _Optional[str] = ..., session: _Optional[str] = ..., agent: _Optional[str] = ..., function: _Optional[str] = ..., arguments_json: _Optional[str] = ..., values: _Optional[_Mapping[str, Value]] = ..., timeout_ms: _Optional[int] = ..., carried: _Optional[bytes] = ..., cached: _Optional[_Union[Value, _Mapping[str, object]]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("data", "media_type", "name")
    DATA_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    media_type: str
    name: str
    def __init__(self, data: _Optional[bytes] = ..., media_type: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class InvokeEvent(_message.Message):
    __slots__ = ("progress", "output", "artifact", "state", "result", "error", "ask", "call_id")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    output: Output
    artifact: ArtifactChunk
    state: StateChange
    result: Result
    error: Error
    ask: Ask
    call_id: str
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping[str, object]]] = ..., output: _Optional[_Union[Output, _Mapping[str, object]]] = ..., artifact: _Optional[_Union[ArtifactChunk, _Mapping[str, object]]] = ..., state: _Optional[_Union[StateChange, _Mapping[str, object]]] = ..., result: _Optional[_Union[Result, _Mapping[str, object]]] = ..., error: _Optional[_Union[Error, _Mapping[str, object]]] = ..., ask: _Optional[_Union[Ask, _Mapping[str, object]]] = ..., call_id: _Optional[str] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("id", "message", "schema_json", "url")
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    id: str
    message: str
    schema_json: str
    url: str
    def __init__(self, id: _Optional[str] = ..., message: _Optional[str] = ..., schema_json: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class AnswerRequest(_message.Message):
    __slots__ = ("call_id", "ask_id", "action", "values_json", "reason")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTION_CANCEL: _ClassVar[AnswerRequest.Action]
        ACTION_ACCEPT: _ClassVar[AnswerRequest.Action]
        ACTION_DECLINE: _ClassVar[AnswerRequest.Action]
        ACTION_REFUSED: _ClassVar[AnswerRequest.Action]
    ACTION_CANCEL: AnswerRequest.Action
    ACTION_ACCEPT: AnswerRequest.Action
    ACTION_DECLINE: AnswerRequest.Action
    ACTION_REFUSED: AnswerRequest.Action
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    VALUES_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    ask_id: str
    action: AnswerRequest.Action
    values_json: str
    reason: str
    def __init__(self, call_id: _Optional[str] = ..., ask_id: _Optional[str] = ..., action: _Optional[_Union[AnswerRequest.Action, str]] = ..., values_json: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AnswerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Progress(_message.Message):
    __slots__ = ("text", "fraction")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    text: str
    fraction: float
    def __init__(self, text: _Optional[str] = ..., fraction: _Optional[float] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("text", "stream")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    text: str
    stream: str
    def __init__(self, text: _Optional[str] = ..., stream: _Optional[str] = ...) -> None: ...

class ArtifactChunk(_message.Message):
    __slots__ = ("id", "name", "media_type", "data", "last")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    media_type: str
    data: bytes
    last: bool
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., media_type: _Optional[str] = ..., data: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...

class StateChange(_message.Message):
    __slots__ = ("state", "entry_points", "note")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_POINTS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    state: str
    entry_points: _containers.RepeatedScalarFieldContainer[str]
    note: str
    def __init__(self, state: _Optional[str] = ..., entry_points: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("text", "json", "artifact", "media_type", "data_json", "state", "carried", "cached")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    text: str
    json: str
    artifact: str
    media_type: str
    data_json: str
    state: StateChange
    carried: bytes
    cached: str
    def __init__(self, text: _Optional[str] = ..., json: _Optional[str] = ..., artifact: _Optional[str] = ..., media_type: _Optional[str] = ..., data_json: _Optional[str] = ..., state: _Optional[_Union[StateChange, _Mapping[str, object]]] = ..., carried: _Optional[bytes] = ..., cached: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("type", "message", "stack_trace")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STACK_TRACE_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    stack_trace: str
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., stack_trace: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("session", "agent")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    session: str
    agent: str
    def __init__(self, session: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class EndBackgroundRequest(_message.Message):
    __slots__ = ("session", "agent")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    session: str
    agent: str
    def __init__(self, session: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class EndBackgroundResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
