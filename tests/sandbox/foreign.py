"""A server of the contract that knows nothing of the SDK; it stands for one in another language."""

from __future__ import annotations

from typing import Final

FOREIGN: Final = """
import asyncio, json, sys
import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

SERVICE = "iact.ext_module.v1.ExtModule"
DOUBLE = pb.Function(name="double", summary="Double a number.", impact=pb.IMPACT_OBSERVE, idempotent=True, parameters_schema=json.dumps(
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}))

def describe(request, context):
    return pb.Manifest(protocol=1, name="foreign", version="1", purpose="Doubles.", functions=[DOUBLE])

def invoke(request, context):
    if request.function != "double":
        yield pb.InvokeEvent(error=pb.Error(type="UnknownFunction", message="There is only double."))
        return
    try:
        given = json.loads(request.arguments_json)
    except ValueError:
        given = None
    if not isinstance(given, dict) or list(given) != ["n"] or type(given["n"]) is not int:
        yield pb.InvokeEvent(error=pb.Error(type="BadArguments", message="It takes n, an integer."))
        return
    yield pb.InvokeEvent(result=pb.Result(text=str(2 * given["n"])))

def check(request, context):
    return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

def handlers(service, **methods):
    return grpc.method_handlers_generic_handler(service, methods)

async def main():
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((
        handlers(SERVICE,
            Describe=grpc.unary_unary_rpc_method_handler(
                describe, pb.DescribeRequest.FromString, pb.Manifest.SerializeToString),
            Invoke=grpc.unary_stream_rpc_method_handler(
                invoke, pb.InvokeRequest.FromString, pb.InvokeEvent.SerializeToString)),
        handlers("grpc.health.v1.Health", Check=grpc.unary_unary_rpc_method_handler(
            check, health_pb2.HealthCheckRequest.FromString, health_pb2.HealthCheckResponse.SerializeToString)),
    ))
    reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server)
    server.add_insecure_port("unix:" + sys.argv[sys.argv.index("--socket") + 1])
    await server.start()
    await server.wait_for_termination()

asyncio.run(main())
"""
