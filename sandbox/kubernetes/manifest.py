"""The objects that describe one module to the cluster: its Sandbox, the pod in it and its secret. Pure functions.

The pod provides the isolation: no rights, no writable file system except bounded memory, only the session's workspace
of the volume, no token for the cluster's API, no name server, and the kernel of the runtime class. A policy of the
namespace (`POLICY`) blocks the network, since a pod can't be without one. A Sandbox ends on its own at its
`shutdownTime`. A living host extends that, so what a dead host leaves disappears automatically.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

from iact.core.ports import JSON
from iact.sandbox import limits
from iact.sandbox.images import payload
from iact.sandbox.kubernetes import bridge
from iact.sandbox.kubernetes.key_pair import KeyPair
from iact.sandbox.kubernetes.namespace import Namespace
from iact.sandbox.owner import Key

GROUP, VERSION, PLURAL = "agents.x-k8s.io", "v1beta1", "sandboxes"
"""The resource of agent-sandbox."""
POLICY = "iact-modules"
"""The network policy that must be in the namespace (deploy/kubernetes/modules.yaml)."""
NAME_LABEL, NAME = "app.kubernetes.io/name", "iact-module"
DATA, HOST, CLAIM, PROCESS = "iact/data", "iact/host", "iact/claim", "iact/process"
"""Labels of an owner: the data directory, the host, and the claim and the process that it runs in."""
SESSION, START = "iact/session", "iact/start"
"""Labels: the session, and the number of one start."""
MODULE = "module"
"""The container that the module runs in."""
USER = 65532
"""The user that modules run as if this host is root; files of sessions are given to that user."""

_MIB = 1 << 20
_SCRIPT: Final = """\
while [ "$IACT_WAITS_FOR" ] && [ ! -S "$IACT_WAITS_FOR" ]; do sleep 0.05; done
unset IACT_WAITS_FOR
prlimit {bounds} "$@" &
trap 'kill "$!"; exit 143' TERM
wait "$!"
"""
"""Waits for the way out, runs the module within its bounds, and ends with its status; reaps orphaned children."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One module to run in a pod. `number`: of this start; `command`: the command line that serves it."""

    name: str
    number: str
    key: Key
    image: str
    bridge_image: str
    command: Sequence[str]
    place: limits.Place
    bounds: limits.Limits
    environment: Mapping[str, str] = field(repr=False)
    apps: bool = False

    @property
    def user(self) -> tuple[int, int]:
        """User and group that both containers run as."""
        uid, _, gid = self.place.user.partition(":")
        return int(uid), int(gid)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of pods."""

    data: str
    """The digest of the data directory."""
    host: str
    """The name of the host."""
    claim: str
    process: str
    """Its number and start, as text: they decide where nothing is known of the claim."""

    def labels(self) -> dict[str, str]:
        """The labels of everything that this process creates."""
        return {DATA: self.data, HOST: label(self.host), CLAIM: self.claim, PROCESS: self.process}


def label(text: str) -> str:
    """`text` as the value of a label: itself if it is valid, otherwise its digest."""
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def labels(pod: Pod, owner: Owner) -> dict[str, str]:
    """The labels of a pod, its Sandbox and its secret."""
    return {NAME_LABEL: NAME, **owner.labels(), SESSION: label(pod.key.session), START: pod.number}


def selector(wanted: Mapping[str, str]) -> str:
    """The API's selector for objects with these labels."""
    return ",".join(f"{name}={value}" for name, value in {NAME_LABEL: NAME, **wanted}.items())


def time_text(time: datetime) -> str:
    """A time in the API's format."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def secret(pod: Pod, owner: Owner, own: KeyPair, host: str) -> dict[str, JSON]:
    """The secret for this pod alone. `own`: its certificate and key; `host`: the certificate of its host."""
    told = {
        "pod.pem": own.key + own.certificate,
        "host.pem": host,
        "bridge.py": _bridge(),
        **{f"env.{name}": value for name, value in pod.place.secrets.items()},
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": pod.name, "labels": dict(labels(pod, owner))},
        "type": "Opaque",
        "immutable": True,
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in told.items()},
    }


def sandbox(pod: Pod, owner: Owner, namespace: Namespace, data: Path, until: datetime) -> dict[str, JSON]:
    """The Sandbox of `pod`. `until`: when it ends on its own."""
    told = {"iact/session": pod.key.session, "iact/module": pod.key.name, "iact/agent": pod.key.whose}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Sandbox",
        "metadata": {
            "name": pod.name,
            "labels": dict(labels(pod, owner)),
            "annotations": dict(told),
        },
        "spec": {
            "podTemplate": {
                "metadata": {"labels": dict(labels(pod, owner)), "annotations": dict(told)},
                "spec": _pod_spec(pod, namespace, data),
            },
            "service": False,
            "shutdownTime": time_text(until),
            "shutdownPolicy": "Delete",
        },
    }


def _pod_spec(pod: Pod, namespace: Namespace, data: Path) -> dict[str, JSON]:
    """The pod: without a token of the cluster, without its names, and as an ordinary user."""
    uid, gid = pod.user
    spec: dict[str, JSON] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "hostname": "sandbox",
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": uid,
            "runAsGroup": gid,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_bridge_container(pod)],
        "containers": [_module_container(pod, namespace, data)],
        "volumes": _volumes(pod, namespace),
    }

    if namespace.runtime:
        spec["runtimeClassName"] = namespace.runtime
    if namespace.node:
        here: JSON = {"key": "metadata.name", "operator": "In", "values": [namespace.node]}
        terms: JSON = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return spec


_CONFINED: Final[dict[str, JSON]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def _bridge_container(pod: Pod) -> JSON:
    """A sidecar in Kubernetes' own sense: starts before the module, ends after it, and does not keep the pod alive."""
    arguments = [*(["egress"] if pod.place.egress else []), *(["apps"] if pod.apps else [])]
    mounts: list[JSON] = [
        _mount("keys", bridge.KEYS, read_only=True),
        _mount("sockets", limits.SOCKET_FOLDER),
    ]
    if pod.place.egress:
        mounts.append(_mount("egress", limits.EGRESS_FOLDER))
    return {
        "name": "bridge",
        "image": pod.bridge_image,
        "restartPolicy": "Always",
        "command": ["python3", "-I", "-S", f"{bridge.KEYS}/bridge.py", *arguments],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "bridge", "containerPort": bridge.PORT}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "16Mi"},
        },
        "securityContext": _CONFINED,
        "volumeMounts": mounts,
    }


def _module_container(pod: Pod, namespace: Namespace, data: Path) -> JSON:
    bounds = pod.bounds
    environment = {**payload.ENVIRONMENT, **pod.environment}
    for name in pod.place.secrets:
        environment.pop(name, None)
    if pod.place.egress:
        environment["IACT_WAITS_FOR"] = f"{limits.EGRESS_FOLDER}/egress.sock"
    told: list[JSON] = [{"name": name, "value": value} for name, value in environment.items()]
    told += [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": pod.name, "key": f"env.{name}"}}}
        for name in pod.place.secrets
    ]
    held = [f"--nofile={bounds.open_files}", f"--fsize={bounds.file_size}", "--core=0"]
    if bounds.own_processes:
        held.append(f"--nproc={bounds.own_processes}")
    return {
        "name": MODULE,
        "image": pod.image,
        "command": ["/bin/sh", "-c", _SCRIPT.format(bounds=" ".join(held)), "sh", *pod.command],
        "workingDir": "/workspace" if pod.place.workspace is not None else "/tmp",
        "env": told,
        "resources": {
            "requests": {"cpu": "50m", "memory": f"{min(bounds.memory, 128 * _MIB)}"},
            "limits": {
                "cpu": f"{round(bounds.cpus * 1000)}m",
                "memory": str(bounds.memory),
                "ephemeral-storage": "64Mi",
            },
        },
        "securityContext": _CONFINED,
        "volumeMounts": list(_module_mounts(pod, namespace, data)),
    }


def _module_mounts(pod: Pod, namespace: Namespace, data: Path) -> Iterable[JSON]:
    place = pod.place

    def of_volume(path: Path, inside: str, *, read_only: bool) -> JSON:
        return {
            **_mount("data", inside, read_only=read_only),
            "subPath": namespace.sub_path(data, path),
        }

    yield of_volume(place.code, limits.INSIDE, read_only=True)
    yield _mount("sockets", limits.SOCKET_FOLDER)
    if place.temporary is None:
        yield _mount("tmp", "/tmp")
    else:
        yield of_volume(place.temporary, "/tmp", read_only=place.right == "look")
    if place.right == "look":
        yield _mount("look", limits.LOOK_FOLDER)
    if place.workspace is not None:
        yield of_volume(place.workspace, "/workspace", read_only=place.read_only)
    if place.egress is not None:
        yield _mount("egress", limits.EGRESS_FOLDER, read_only=True)
    if place.site is not None:
        yield of_volume(place.site, limits.SITE_FOLDER, read_only=True)
    if place.program is not None:
        yield of_volume(place.program, limits.PROGRAM_FOLDER, read_only=True)


def _mount(volume: str, inside: str, *, read_only: bool = False) -> dict[str, JSON]:
    return {"name": volume, "mountPath": inside, "readOnly": read_only}


def _volumes(pod: Pod, namespace: Namespace) -> list[JSON]:
    keys: list[JSON] = [{"key": name, "path": name} for name in ("pod.pem", "host.pem", "bridge.py")]
    found: list[JSON] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": namespace.claim}},
        {"name": "keys", "secret": {"secretName": pod.name, "defaultMode": 0o444, "items": keys}},
        _memory("sockets", _MIB),
    ]
    if pod.place.temporary is None:
        found.append(_memory("tmp", pod.bounds.tmp_size))
    if pod.place.right == "look":
        found.append(_memory("look", pod.bounds.look_size))
    if pod.place.egress is not None:
        found.append(_memory("egress", _MIB))
    return found


def _memory(name: str, size: int) -> JSON:
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}


@cache
def _bridge() -> str:
    return Path(bridge.__file__).read_text(encoding="utf-8")
