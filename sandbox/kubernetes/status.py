"""Turns the status of a Sandbox and its pod into sentences: while it starts, runs, and after it ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

from iact.sandbox.kubernetes.manifest import MODULE

if TYPE_CHECKING:
    from kubernetes.aio.client import V1ContainerState, V1ContainerStatus, V1Pod

_HOPELESS: Final = ("InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "CreateContainerError")
_NO_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff")


class _Reply(BaseModel):
    """Part of an answer of the API; fields that are not named here are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Condition(_Reply):
    """One of a Sandbox's conditions."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class SandboxStatus(_Reply):
    """The controller's status of a Sandbox."""

    conditions: list[Condition] = []
    pod_ips: list[str] = Field(default=[], alias="podIPs")
    node: str = Field(default="", alias="nodeName")


class Metadata(_Reply):
    """An object's name, id and labels."""

    name: str
    uid: str = ""
    labels: dict[str, str] = {}


class SandboxReply(_Reply):
    """A Sandbox, as the API returns it."""

    metadata: Metadata
    status: SandboxStatus = SandboxStatus()

    @property
    def address(self) -> str:
        """The pod's address once its containers run, otherwise ""."""
        ready = any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
        return self.status.pod_ips[0] if ready and self.status.pod_ips else ""

    @property
    def ended(self) -> str:
        """Why its pod ended, according to the controller; "" if it has not."""
        for each in self.status.conditions:
            if (each.type == "Finished" and each.status == "True") or each.reason == "SandboxExpired":
                return each.reason
        return ""


class SandboxList(_Reply):
    """A list of Sandboxes."""

    items: list[SandboxReply] = []


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a pod does not start. `mends`: it may still start without intervention."""

    reason: str
    mends: bool


def not_starting(pod: V1Pod) -> Failure | None:
    """The reason that `pod` gives for not running, if any."""
    status = pod.status
    if status is None:
        return None
    for each in [*(status.init_container_statuses or []), *(status.container_statuses or [])]:
        waiting = each.state.waiting if each.state is not None else None
        why = (waiting.reason or "") if waiting is not None else ""
        told = f"{why}: {_line(waiting.message)}" if waiting is not None and waiting.message else why
        if why in _NO_IMAGE:
            return Failure(
                f"the image {each.image} can't be fetched ({told}); push it with `iact image push`", False
            )
        if why in _HOPELESS:
            return Failure(f"its container can't be made ({told})", False)
        if why == "CreateContainerConfigError":
            return Failure(f"its container can't be set up ({told})", True)
    for condition in status.conditions or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Failure(f"no node takes its pod ({_line(condition.message or 'no reason given')})", True)
    return None


def why_ended(pod: V1Pod, name: str) -> str | None:
    """A sentence on how the module `name` ended in `pod`; None while it runs."""
    status = pod.status
    state = _module_state(status.container_statuses or []) if status is not None else None
    ended = state.terminated if state is not None else None
    if ended is not None and ended.reason == "OOMKilled":
        return f"The kernel ended the module {name}, because it used more memory than allowed."
    if status is not None and status.reason == "Evicted":
        return f"The cluster evicted the pod of the module {name} ({_line(status.message or 'no reason given')})."
    if pod.metadata is not None and pod.metadata.deletion_timestamp is not None:
        return f"The pod of the module {name} was deleted in the cluster."
    if ended is not None:
        return f"The module {name} ended with status {ended.exit_code}."
    if status is not None and status.phase in ("Failed", "Succeeded"):
        return f"The pod of the module {name} ended ({status.reason or status.phase})."
    return None


def _module_state(containers: list[V1ContainerStatus]) -> V1ContainerState | None:
    return next((each.state for each in containers if each.name == MODULE), None)


def _line(text: str) -> str:
    """The first line of a cluster's message, shortened."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return "".join(char if char.isprintable() else " " for char in first[:200])
