"""The few requests that a host makes to a cluster's API, with time limits, retries, and a sentence for each refusal.

The resource is agent-sandbox's `Sandbox`; its controller creates the pod, reports its address, and ends it when its
time is over. The Python client of agent-sandbox claims Sandboxes from a pool of ready-made ones, whose volumes and
secrets are fixed when the pool is created, so it can't be used here. The official client's asynchronous half makes the
requests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.client import ApiClient, Configuration, V1Pod
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException

from iact.core.errors import SandboxUnavailable
from iact.core.ports import JSON
from iact.sandbox.kubernetes.manifest import (
    GROUP,
    NAME,
    NAME_LABEL,
    PLURAL,
    POLICY,
    START,
    VERSION,
    selector,
    time_text,
)
from iact.sandbox.kubernetes.status import SandboxList, SandboxReply

_Answer = TypeVar("_Answer")

_TRANSIENT: Final = (408, 425, 429, 500, 502, 503, 504)
_PAUSES: Final = (0.1, 0.3, 1.0)
"""Seconds between attempts; the last value repeats."""
_IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class NameTaken(Exception):
    """Something else has the name."""


@dataclass(slots=True)
class ClusterApi:
    """Makes requests in one namespace. `patience`: seconds that one request may take, including all attempts."""

    namespace: str
    patience: float = 15.0
    _client: ApiClient | None = None

    async def open(self) -> None:
        """Find the API as any client does: in a pod by its service account, otherwise by KUBECONFIG.

        Raises:
            SandboxUnavailable: no configuration was found, or modules would not be kept from the network.
        """
        configuration = Configuration()
        try:
            file = os.environ.get("KUBECONFIG")
            if file or not _IN_CLUSTER.exists():
                await config.load_kube_config(file, client_configuration=configuration)
            else:
                config.load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise SandboxUnavailable(
                "Tools can't run on Kubernetes, because the address of its API is not configured "
                f"({_first(str(error))}). Run iact in a pod with a service account, or set KUBECONFIG."
            ) from error

        self._client = ApiClient(configuration)
        await self._check_policy()

    async def close(self) -> None:
        """Close its connections."""
        found, self._client = self._client, None
        if found is not None:
            await found.close()

    async def _check_policy(self) -> None:
        """Check that the namespace has the policy that keeps modules from every network."""
        policies = client.NetworkingV1Api(self._asking)
        try:
            found = await self._asked(
                "read its network policy",
                lambda: policies.read_namespaced_network_policy(
                    POLICY, self.namespace, _request_timeout=self.patience
                ),
            )
        except _Missing:
            raise SandboxUnavailable(
                f"The namespace {self.namespace} has no network policy {POLICY}, so modules could reach the network. "
                "Apply deploy/kubernetes/modules.yaml."
            ) from None
        spec = found.spec
        chosen = (spec.pod_selector.match_labels or {}) if spec is not None and spec.pod_selector else {}
        closed = (
            spec is not None
            and set(spec.policy_types or []) == {"Ingress", "Egress"}
            and not spec.egress
            and chosen in ({}, {NAME_LABEL: NAME})
        )
        if not closed:
            raise SandboxUnavailable(
                f"The network policy {POLICY} of the namespace {self.namespace} lets modules out, so none are started. "
                "Apply deploy/kubernetes/modules.yaml again."
            )

    async def create_secret(self, body: Mapping[str, JSON]) -> None:
        """Create a secret, or find the one that an earlier attempt of this start created.

        Raises:
            NameTaken: another secret has its name.
        """
        core = client.CoreV1Api(self._asking)

        async def make() -> None:
            await core.create_namespaced_secret(
                self.namespace, _of(client.V1Secret, body), _request_timeout=self.patience
            )

        async def labels() -> Mapping[str, str]:
            name = _name(body)
            found = await core.read_namespaced_secret(name, self.namespace, _request_timeout=self.patience)
            return (found.metadata.labels or {}) if found.metadata is not None else {}

        await self._created("create secrets", body, make, labels)

    async def own_secret(self, name: str, sandbox: SandboxReply) -> None:
        """Have a secret removed together with its Sandbox."""
        core = client.CoreV1Api(self._asking)
        owner = {
            "apiVersion": f"{GROUP}/{VERSION}", "kind": "Sandbox", "name": sandbox.metadata.name, "uid": sandbox.metadata.uid,
        }  # fmt: skip
        await self._asked(
            "change secrets",
            lambda: core.patch_namespaced_secret(
                name,
                self.namespace,
                {"metadata": {"ownerReferences": [owner]}},
                _content_type="application/merge-patch+json",
                _request_timeout=self.patience,
            ),
        )

    async def delete_secret(self, name: str) -> None:
        """Remove a secret, if it exists."""
        core = client.CoreV1Api(self._asking)
        with suppress(_Missing):
            await self._asked(
                "delete secrets",
                lambda: core.delete_namespaced_secret(name, self.namespace, _request_timeout=self.patience),
            )

    async def create_sandbox(self, body: Mapping[str, JSON]) -> SandboxReply:
        """Create a Sandbox, or find the one that an earlier attempt of this start created.

        Raises:
            NameTaken: another Sandbox has its name.
        """
        sandboxes = client.CustomObjectsApi(self._asking)

        async def make() -> None:
            await sandboxes.create_namespaced_custom_object(
                *self._where, dict(body), _request_timeout=self.patience
            )

        async def labels() -> Mapping[str, str]:
            found = await self.sandbox(_name(body))
            return found.metadata.labels if found is not None else {}

        await self._created("create sandboxes", body, make, labels)
        found = await self.sandbox(_name(body))
        if found is None:
            raise SandboxUnavailable(
                "The cluster deleted the Sandbox of a module at once; check the Sandbox's events."
            )
        return found

    async def sandbox(self, name: str) -> SandboxReply | None:
        """The Sandbox of this name, or None."""
        sandboxes = client.CustomObjectsApi(self._asking)

        async def read() -> SandboxReply:
            found = await sandboxes.get_namespaced_custom_object(
                *self._where, name, _request_timeout=self.patience
            )
            return SandboxReply.model_validate(found)

        with suppress(_Missing):
            return await self._asked("read sandboxes", read)
        return None

    async def sandboxes(self, labels: Mapping[str, str]) -> Sequence[SandboxReply]:
        """All Sandboxes of modules with these labels."""
        sandboxes = client.CustomObjectsApi(self._asking)

        async def read() -> SandboxList:
            found = await sandboxes.list_namespaced_custom_object(
                *self._where, label_selector=selector(labels), _request_timeout=self.patience
            )
            return SandboxList.model_validate(found)

        try:
            return (await self._asked("list sandboxes", read)).items
        except _Missing:
            raise _no_controller() from None

    async def extend(self, name: str, until: datetime) -> None:
        """Extend a Sandbox's life to `until`, if it still exists."""
        await self._patch(name, {"spec": {"shutdownTime": time_text(until)}})

    async def relabel(self, name: str, labels: Mapping[str, JSON]) -> None:
        """Change the labels of a Sandbox and its pod."""
        changed: JSON = {"labels": dict(labels)}
        await self._patch(name, {"metadata": changed, "spec": {"podTemplate": {"metadata": changed}}})

    async def _patch(self, name: str, change: Mapping[str, JSON]) -> None:
        """Change fields of a Sandbox, if there is one of this name."""
        sandboxes = client.CustomObjectsApi(self._asking)
        with suppress(_Missing):
            await self._asked(
                "change sandboxes",
                lambda: sandboxes.patch_namespaced_custom_object(
                    *self._where,
                    name,
                    dict(change),
                    _content_type="application/merge-patch+json",
                    _request_timeout=self.patience,
                ),
            )

    async def delete_sandbox(self, name: str) -> None:
        """Remove a Sandbox with its pod, if it exists."""
        sandboxes = client.CustomObjectsApi(self._asking)
        with suppress(_Missing):
            await self._asked(
                "delete sandboxes",
                lambda: sandboxes.delete_namespaced_custom_object(
                    *self._where,
                    name,
                    propagation_policy="Background",
                    _request_timeout=self.patience,
                ),
            )

    async def pod(self, name: str) -> V1Pod | None:
        """The pod of this name, which is also its Sandbox's; None if there is none."""
        core = client.CoreV1Api(self._asking)
        with suppress(_Missing):
            return await self._asked(
                "read pods",
                lambda: core.read_namespaced_pod(name, self.namespace, _request_timeout=self.patience),
            )
        return None

    async def log(self, name: str, container: str, lines: int) -> str:
        """The end of a container's output; empty if it is not available."""
        core = client.CoreV1Api(self._asking)
        with suppress(_Missing, SandboxUnavailable):
            said = await self._asked(
                "read logs",
                lambda: core.read_namespaced_pod_log(
                    name,
                    self.namespace,
                    container=container,
                    tail_lines=lines,
                    _request_timeout=self.patience,
                ),
            )
            return str(said or "")
        return ""

    @property
    def _asking(self) -> ApiClient:
        if self._client is None:
            raise SandboxUnavailable("The sandbox is closed; start the program again.")
        return self._client

    @property
    def _where(self) -> tuple[str, str, str, str]:
        return GROUP, VERSION, self.namespace, PLURAL

    async def _created(
        self,
        what: str,
        body: Mapping[str, JSON],
        make: Callable[[], Awaitable[None]],
        labels: Callable[[], Awaitable[Mapping[str, str]]],
    ) -> None:
        """Create an object. An answer may get lost, so an object that already has the name may be our own."""
        try:
            await self._asked(what, make)
        except _Missing:
            raise _no_controller() from None
        except NameTaken:
            found: Mapping[str, JSON] | Mapping[str, str] = {}
            with suppress(_Missing):  # it disappeared in between, and another object may have its name by now
                found = await self._asked("read what has a name", labels)
            if found.get(START) != _labels(body).get(START):
                raise

    async def _asked(self, what: str, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Repeat a request until it is answered, within `patience`.

        Raises:
            _Missing: the object does not exist.
            NameTaken: the name is taken.
            SandboxUnavailable: the API refuses, or does not answer.
        """
        failed = "no answer"
        number, until = 0, asyncio.get_running_loop().time() + self.patience
        try:
            async with asyncio.timeout_at(until):
                while asyncio.get_running_loop().time() < until:  # a request's own time-out may hide ours
                    try:
                        return await ask()
                    except ApiException as error:
                        if error.status not in _TRANSIENT:
                            raise self._refused(what, error) from error
                        failed = f"HTTP {error.status}"
                    except (aiohttp.ClientError, TimeoutError, OSError) as error:
                        failed = _first(str(error)) or type(error).__name__
                    except ValueError:
                        failed = "what answered is no such API"
                    await asyncio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
                    number += 1
        except TimeoutError:
            pass
        raise SandboxUnavailable(
            f"The cluster's API did not answer within {self.patience:.0f} seconds when asked to "
            f"{what} ({failed}). Running modules continue. Try again; if the problem persists, check "
            "the cluster."
        )

    def _refused(self, what: str, error: ApiException) -> Exception:
        said = _said(error)
        if error.status == 404:
            return _Missing(said)
        if error.status == 409:
            return NameTaken(said)
        if error.status in (401, 403):
            return SandboxUnavailable(
                f"The cluster does not let iact {what} in the namespace {self.namespace} ({said}). "
                "Check the role and the quota there (deploy/kubernetes/modules.yaml)."
            )
        return SandboxUnavailable(f"The cluster refused to {what} (HTTP {error.status}: {said}).")


class _Missing(Exception):
    """The object does not exist."""


def _no_controller() -> SandboxUnavailable:
    return SandboxUnavailable(
        f"The cluster has no resource {PLURAL}.{GROUP}, or lacks the namespace. Install agent-sandbox in it and apply "
        "deploy/kubernetes/modules.yaml."
    )


_Model = TypeVar("_Model", bound=client.V1Secret)


def _of(kind: type[_Model], body: Mapping[str, JSON]) -> _Model:
    made = kind.from_dict(dict(body))
    assert isinstance(made, kind)
    return made


def _name(body: Mapping[str, JSON]) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _labels(body: Mapping[str, JSON]) -> Mapping[str, JSON]:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    found = metadata.get("labels")
    return found if isinstance(found, dict) else {}


def _said(error: ApiException) -> str:
    """The API's explanation of a refusal: the message of its Status."""
    text = str(error.body or error.reason or "")
    with suppress(ValueError):
        found = client.V1Status.from_json(text)
        text = (found.message or text) if found is not None else text
    return _first(text)


def _first(text: str) -> str:
    lines = text.strip().splitlines()
    return "".join(char if char.isprintable() else " " for char in lines[0][:300]) if lines else ""
