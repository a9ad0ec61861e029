"""A Kubernetes cluster of the tests' own: the API over HTTP as its clients speak it, agent-sandbox's controller, one node.

It knows the few resources that iact uses, checks every pod and secret against the published schemas, and lets a caller
do what the role in deploy/kubernetes/modules.yaml lets it do, and nothing else. Pods are real containers (`kubelet`).
What it can't show: a real scheduler, network and runtime classes, and how the real controller behaves beyond its documented
interface.
"""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import kubernetes_validate
import yaml
from aiohttp import web

from iact.core.ports import JSON
from tests.kubernetes.kubelet import Kubelet, Table, rows, table

MODULES = Path(__file__).parents[2] / "deploy" / "kubernetes" / "modules.yaml"
NAMESPACE = "iact"
TOKEN = "the-token-of-iact"
SCHEMAS = "1.37"
_GROUPS = {"sandboxes": "agents.x-k8s.io/v1beta1", "networkpolicies": "networking.k8s.io/v1"}
_SANDBOX = {
    "podTemplate",
    "service",
    "shutdownTime",
    "shutdownPolicy",
    "operatingMode",
    "volumeClaimTemplates",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls a request. `after`: it is carried out first, and only its answer is lost; `cut`: no answer comes.

    Without a status and not cut it only takes `seconds` longer; 200 is an answer that says nothing.
    """

    status: int = 0
    seconds: float = 0
    after: bool = False
    cut: bool = False
    message: str = "made to fail"


Faults = Callable[[str, str], Fault | None]
"""By verb ("create") and resource ("sandboxes")."""


class Refused(Exception):
    """Becomes a Status, as the API answers refusals."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class FakeCluster:
    """The whole of it; `close` ends all that runs."""

    def __init__(self, folder: Path, claims: Mapping[str, Path]) -> None:
        self.kubelet = Kubelet(folder / "pods", claims)
        self.objects: dict[tuple[str, str], Table] = {}
        self.asked: list[tuple[str, str]] = []
        self.faults: Faults = lambda verb, resource: None
        self.before_create: Callable[[str, str], None] = lambda resource, name: None
        """Hears of each resource and name that is about to be made."""
        self.controller = True
        """Whether agent-sandbox is installed."""
        self.slow_ends = threading.Event()
        """Pods end as long as it is set."""
        self.slow_ends.set()
        self._rules: list[Table] = []
        self._lock = threading.RLock()
        self._folder = folder
        for found in yaml.safe_load_all(MODULES.read_text(encoding="utf-8")):
            if found["kind"] == "NetworkPolicy":
                self.objects["networkpolicies", found["metadata"]["name"]] = found
            if found["kind"] == "Role":
                self._rules = rows(found["rules"])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake cluster", daemon=True)
        self._thread.start()
        self._runner: web.AppRunner | None = None
        self.port = self._in_loop(self._serve(0))

    @property
    def kubeconfig(self) -> Path:
        """A file that says how to reach it."""
        path = self._folder / "kubeconfig"
        told = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "iact", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "iact", "namespace": NAMESPACE}}],
        }  # fmt: skip
        path.write_text(json.dumps(told), encoding="utf-8")
        return path

    def names(self, resource: str) -> list[str]:
        """What there is of a resource."""
        with self._lock:
            return sorted(name for kind, name in self.objects if kind == resource)

    def object(self, resource: str, name: str) -> Table:
        """One of it."""
        with self._lock:
            return self.objects[resource, name]

    def go_away(self) -> None:
        """Stop answering; what runs goes on."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._in_loop(runner.cleanup())

    def come_back(self) -> None:
        """Answer again, at the same address."""
        self._in_loop(self._serve(self.port))

    def delete(self, resource: str, name: str) -> None:
        """As anybody with kubectl might."""
        self._delete(resource, name)

    def delete_node(self) -> None:
        """Its node is drained: all pods go, and their Sandboxes stay without them."""
        for name in self.names("pods"):
            self._end_pod(name)

    def expire(self, now: datetime) -> None:
        """What the controller does with Sandboxes whose time is over."""
        for name in self.names("sandboxes"):
            spec = table(self.object("sandboxes", name)["spec"])
            if datetime.fromisoformat(str(spec["shutdownTime"])) <= now:
                assert spec["shutdownPolicy"] == "Delete"
                self._delete("sandboxes", name)

    def close(self) -> None:
        """End it, and every container of its pods."""
        self.slow_ends.set()
        self.go_away()
        self.kubelet.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work: Awaitable[int | None]) -> int:
        async def run() -> int:
            return await work or 0

        done: Future[int] = asyncio.run_coroutine_threadsafe(run(), self._loop)
        return done.result(timeout=30)

    async def _serve(self, port: int) -> int:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            verb, resource, name, sub = self._route(request)
            fault = self.faults(verb, resource)
            if fault is not None:
                await asyncio.sleep(fault.seconds)
                if (fault.status or fault.cut) and not fault.after:
                    return self._failed(request, fault)
            body = table(json.loads(await request.read() or b"{}"))
            found = await asyncio.to_thread(self._carry_out, verb, resource, name, sub, body, request)
            if fault is not None and fault.after:
                return self._failed(request, fault)
            if isinstance(found, str):
                return web.Response(text=found)
            return web.json_response(found, status=201 if verb == "create" else 200)
        except Refused as refused:
            status = {
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": refused.code, "reason": refused.reason,
                "message": str(refused),
            }  # fmt: skip
            return web.json_response(status, status=refused.code)

    def _failed(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.cut and request.transport is not None:
            request.transport.abort()
        if fault.status > 200:
            raise Refused(fault.status, "Fault", fault.message)
        return web.Response(text="welcome to the portal")

    def _route(self, request: web.Request) -> tuple[str, str, str, str]:
        parts = request.path.strip("/").split("/")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        group = "/".join(parts[1:3]) if parts[0] == "apis" else "v1"
        rest = parts[3:] if parts[0] == "apis" else parts[2:]
        if len(rest) < 3 or rest[0] != "namespaces":
            raise Refused(404, "NotFound", f"no such path: {request.path}")
        resource, name, sub = rest[2], *[*rest[3:], "", ""][:2]
        if _GROUPS.get(resource, "v1") != group or (resource == "sandboxes" and not self.controller):
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if rest[1] != NAMESPACE:
            raise Refused(403, "Forbidden", f"{resource} is forbidden in the namespace {rest[1]!r}")
        verbs = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get" if name else "list"}
        verb = verbs[request.method]
        full = f"{resource}/{sub}" if sub else resource
        self.asked.append((verb, full))
        for rule in self._rules:
            groups, resources, allowed = (rule[part] for part in ("apiGroups", "resources", "verbs"))
            assert isinstance(groups, list)
            assert isinstance(resources, list)
            assert isinstance(allowed, list)
            if group.rpartition("/")[0] in groups and full in resources and verb in allowed:
                return verb, resource, name, sub
        message = (
            f'{full} is forbidden: User "system:serviceaccount:iact:iact" cannot {verb} resource "{full}"'
        )
        raise Refused(403, "Forbidden", message)

    def _carry_out(
        self, verb: str, resource: str, name: str, sub: str, body: Table, request: web.Request
    ) -> JSON:
        if verb == "create":
            return self._create(resource, body)
        if verb == "list":
            asked = dict(
                each.split("=") for each in request.query.get("labelSelector", "").split(",") if each
            )
            with self._lock:
                found = [each for (kind, _), each in self.objects.items() if kind == resource]
            return {"kind": "List", "items": [each for each in found if _has(each, asked)]}
        with self._lock:
            if (resource, name) not in self.objects:
                raise Refused(404, "NotFound", f'{resource} "{name}" not found')
        if sub == "log":
            return self.kubelet.log(name, request.query["container"], int(request.query["tailLines"]))
        if verb == "patch":
            assert request.content_type == "application/merge-patch+json", request.content_type
            return self._patch(resource, name, body)
        if verb == "delete":
            self._delete(resource, name)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        return self.object(resource, name)

    def _create(self, resource: str, body: Table) -> JSON:
        metadata = table(body["metadata"])
        name = str(metadata["name"])
        if resource == "sandboxes":
            spec = table(body["spec"])
            if set(spec) - _SANDBOX:
                raise Refused(422, "Invalid", f"unknown fields {set(spec) - _SANDBOX}")
            pod = _pod_of(name, spec)
            _check(pod)
        else:
            _check(body)
        self.before_create(resource, name)
        with self._lock:
            if (resource, name) in self.objects:
                raise Refused(409, "AlreadyExists", f'{resource} "{name}" already exists')
            metadata["uid"] = str(uuid.uuid4())
            metadata["namespace"] = NAMESPACE
            self.objects[resource, name] = body
        if resource == "sandboxes":
            with self._lock:
                self.objects["pods", name] = pod
            threading.Thread(target=self._run_pod, args=(name, pod), daemon=True).start()
        return body

    def _run_pod(self, name: str, pod: Table) -> None:
        def secret(asked: str) -> Table | None:
            with self._lock:
                return self.objects.get(("secrets", asked))

        def said(status: Table) -> None:
            with self._lock:
                pod["status"] = status
                sandbox = self.objects.get(("sandboxes", name))
                if sandbox is not None:
                    sandbox["status"] = self._status(status)

        self.kubelet.start(name, pod, secret, said)

    def _status(self, pod: Table) -> Table:
        """What the controller makes of a pod's status."""
        running, over = pod["phase"] == "Running", pod["phase"] in ("Failed", "Succeeded")
        conditions: list[JSON] = [
            {
                "type": "Ready", "status": "True" if running else "False", "message": "",
                "reason": "DependenciesReady" if running else "DependenciesNotReady",
            }
        ]  # fmt: skip
        if over:
            conditions.append(
                {"type": "Finished", "status": "True", "reason": f"Pod{pod['phase']}", "message": ""}
            )
        found: Table = {"conditions": conditions, "nodeName": self.kubelet.node}
        if running:
            found["podIPs"] = [pod["podIP"]]
        return found

    def _patch(self, resource: str, name: str, change: Table) -> JSON:
        with self._lock:
            found = self.objects[resource, name]
            _merge(found, change)
            if resource == "sandboxes":
                template = table(table(table(found["spec"])["podTemplate"])["metadata"])
                table(self.objects["pods", name]["metadata"])["labels"] = template["labels"]
            return found

    def _delete(self, resource: str, name: str) -> None:
        with self._lock:
            found = self.objects.pop((resource, name), None)
            if found is None:
                return
            uid = table(found["metadata"]).get("uid")
            owned = [
                key for key, each in self.objects.items()
                if any(owner.get("uid") == uid for owner in rows(table(each["metadata"]).get("ownerReferences")))
            ]  # fmt: skip
        for kind, each in owned:
            self._delete(kind, each)
        if resource == "sandboxes":
            threading.Thread(target=self._end_pod, args=(name,), daemon=True).start()

    def _end_pod(self, name: str) -> None:
        with suppress(KeyError):
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            table(self.object("pods", name)["metadata"])["deletionTimestamp"] = now
        self.slow_ends.wait()
        self.kubelet.stop(name)
        with self._lock:
            self.objects.pop(("pods", name), None)
            sandbox = self.objects.get(("sandboxes", name))
            if sandbox is not None:
                sandbox["status"] = self._status({"phase": "Pending"})


def _pod_of(name: str, spec: Table) -> Table:
    template = table(spec["podTemplate"])
    metadata = {"name": name, "namespace": NAMESPACE, **json.loads(json.dumps(template["metadata"]))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _check(body: Table) -> None:
    try:
        kubernetes_validate.validate(json.loads(json.dumps(body)), SCHEMAS, strict=True)
    except kubernetes_validate.ValidationError as error:
        raise Refused(422, "Invalid", f"{'.'.join(map(str, error.path))}: {error.message}") from error


def _has(found: Table, labels: Mapping[str, str]) -> bool:
    there = table(found["metadata"]).get("labels")
    return isinstance(there, dict) and all(there.get(name) == value for name, value in labels.items())


def _merge(found: Table, change: Table) -> None:
    """RFC 7386, as far as it is used: tables are merged, all else is replaced."""
    for name, value in change.items():
        there = found.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            _merge(there, value)
        else:
            found[name] = value
