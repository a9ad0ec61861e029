"""Converts between the SDK's own types and the messages of the contract."""

from __future__ import annotations

import json

from ext_modules.sdk.call import ArtifactChunk, Event, Output, Progress, StateChange
from ext_modules.sdk.module import Function, Module
from ext_modules.sdk.parameters import BadArguments
from ext_modules.sdk.questions import Action, Answer, Ask, AskRefused
from ext_modules.sdk.runner import Asked, Ended, Failed
from ext_modules.sdk.values import Value
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

_WORKSPACE = {
    "none": pb.Needs.WORKSPACE_NONE,
    "read": pb.Needs.WORKSPACE_READ,
    "write": pb.Needs.WORKSPACE_WRITE,
}
_ACTIONS: dict[int, Action] = {
    pb.AnswerRequest.ACTION_ACCEPT: "accept",
    pb.AnswerRequest.ACTION_DECLINE: "decline",
}
_IMPACT = {0: pb.IMPACT_OBSERVE, 1: pb.IMPACT_OPERATE, 2: pb.IMPACT_OVERRIDE}


def manifest(module: Module) -> pb.Manifest:
    """Return the module's answer to Describe."""
    return pb.Manifest(
        protocol=1,
        name=module.name,
        version=module.version,
        purpose=" ".join(module.purpose.split()),
        keywords=list(module.keywords),
        functions=[_function(function) for function in module.functions.values()],
        states=[pb.State(name=name, summary=summary) for name, summary in module.states.items()],
        needs=_needs(module),
    )


def _function(function: Function) -> pb.Function:
    return pb.Function(
        name=function.name,
        alias=function.alias,
        summary=function.summary,
        documentation=function.documentation,
        parameters_schema=json.dumps(function.parameters.schema(), ensure_ascii=False),
        body_parameter=function.body,
        result_media_type=function.media_type,
        impact=_IMPACT[function.impact],
        idempotent=function.idempotent,
        exclusive=function.exclusive,
        states=list(function.states),
        default_timeout_ms=round(function.timeout * 1000),
        held=function.held,
        cache_key=function.cache_key,
    )


def _needs(module: Module) -> pb.Needs:
    needs = module.needs
    return pb.Needs(
        egress=list(needs.egress),
        secrets=list(needs.secrets),
        workspace=_WORKSPACE[needs.workspace],
        memory_bytes=needs.memory_bytes,
        cpu=needs.cpu,
        pids=needs.pids,
        own_instances=needs.own_instances or module.own_instances,
        forgets=needs.forgets,
    )


def asked(request: pb.InvokeRequest, *, remaining: float) -> Asked:
    """Convert a request. `remaining`: seconds until the gRPC deadline.

    Raises:
        BadArguments: the arguments are not a JSON object.
    """
    try:
        arguments = json.loads(request.arguments_json or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"The arguments are not JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise BadArguments("The arguments are not a JSON object.")

    timeout = remaining
    if request.timeout_ms:
        timeout = min(timeout, request.timeout_ms / 1000)
    cached: Value | None = None
    if request.HasField("cached"):
        cached = Value(request.cached.data, request.cached.media_type)
    return Asked(
        call_id=request.call_id,
        session=request.session,
        agent=request.agent,
        function=request.function,
        arguments=arguments,
        values={
            name: Value(value.data, value.media_type, value.name) for name, value in request.values.items()
        },
        timeout=timeout,
        carried=request.carried,
        cached=cached,
    )


def event(given: Event | Ended | Failed) -> pb.InvokeEvent:
    """Convert one event of a call to its message."""
    match given:
        case Progress():
            return pb.InvokeEvent(progress=pb.Progress(text=_clean(given.text), fraction=given.fraction))
        case Output():
            return pb.InvokeEvent(output=pb.Output(text=given.text, stream=given.stream))
        case ArtifactChunk():
            return pb.InvokeEvent(artifact=_artifact(given))
        case StateChange():
            return pb.InvokeEvent(state=state(given))
        case Ask():
            return pb.InvokeEvent(ask=_ask(given))
        case Ended():
            return pb.InvokeEvent(result=_result(given))
        case Failed():
            return pb.InvokeEvent(error=_error(given))


def _artifact(chunk: ArtifactChunk) -> pb.ArtifactChunk:
    return pb.ArtifactChunk(
        id=chunk.id,
        name=chunk.name,
        media_type=chunk.media_type,
        data=chunk.data,
        last=chunk.last,
    )


def _ask(ask: Ask) -> pb.Ask:
    schema = "" if ask.schema is None else json.dumps(dict(ask.schema))
    return pb.Ask(id=ask.id, message=_clean(ask.message), schema_json=schema, url=_clean(ask.url))


def _error(failed: Failed) -> pb.Error:
    return pb.Error(
        type=failed.type[:128],
        message=_cut(_clean(failed.message), 64 << 10),
        stack_trace=_cut(_clean(failed.trace), 256 << 10),
    )


def answer(request: pb.AnswerRequest) -> Answer | AskRefused:
    """Convert the answer to a question. Values that are not a JSON object count as not filled in."""
    if request.action == pb.AnswerRequest.ACTION_REFUSED:
        return AskRefused(request.reason)

    try:
        values = json.loads(request.values_json or "{}")
    except (ValueError, RecursionError):
        values = {}
    if not isinstance(values, dict):
        values = {}
    return Answer(_ACTIONS.get(request.action, "cancel"), values, request.reason)


def state(change: StateChange) -> pb.StateChange:
    """Convert a state to its message."""
    note = _clean(" ".join(change.note.split()))[:200]
    return pb.StateChange(state=change.state, entry_points=list(change.entry_points), note=note)


def _result(ended: Ended) -> pb.Result:
    result = pb.Result(media_type=ended.media_type, data_json=ended.data)
    match ended.kind:
        case "text":
            result.text = ended.value
        case "json":
            result.json = ended.value
        case "artifact":
            result.artifact = ended.value
        case "output":
            pass
    if ended.state is not None:
        result.state.CopyFrom(state(ended.state))
    if ended.carried is not None:
        result.carried = ended.carried
    result.cached = ended.cached
    return result


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8: the beginning, and the end, where a trace says what happened."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    half = (limit - 16) // 2
    return encoded[:half].decode("utf-8", "ignore") + "\n[...]\n" + encoded[-half:].decode("utf-8", "ignore")
