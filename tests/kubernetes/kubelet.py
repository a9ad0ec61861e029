"""A node of the fake cluster: pods become real containers of the machine's engine, as far as their spec says.

The module's container has no network at all, as if the namespace's policy were enforced to the last packet. The sidecar
listens on a loopback address of this machine, which is the pod's; so nothing here says anything about a cluster's own
network. Runtime classes are known by name and all run on the engine's default.
"""

from __future__ import annotations

import base64
import random
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import LogConfig, Mount

from iact.core.ports import JSON

LABEL = "iact.fake-cluster"
Table = dict[str, JSON]


def table(found: JSON) -> Table:
    """`found`, which is a table."""
    assert isinstance(found, dict), found
    return found


def rows(found: JSON) -> list[Table]:
    """`found`, which is a list of tables, or nothing."""
    assert isinstance(found, list | None), found
    return [table(each) for each in found or []]


@dataclass
class RunningPod:
    """One pod. `said`: hears of each change of its status."""

    name: str
    spec: Table
    folder: Path
    ip: str
    containers: dict[str, Container] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)


class Kubelet:
    """Runs pods below `folder`. `claims`: where the volumes are; `service`: what KUBERNETES_SERVICE_* say in pods."""

    def __init__(self, folder: Path, claims: Mapping[str, Path], *, node: str = "node-1") -> None:
        self._folder = folder
        self._claims = dict(claims)
        self.node = node
        self.service = ("127.0.0.1", "9")
        self.engine = docker.from_env()
        self.pods: dict[str, RunningPod] = {}

    def start(
        self,
        name: str,
        pod: Table,
        secret: Callable[[str], Table | None],
        said: Callable[[Table], None],
    ) -> None:
        """Bring a pod up, and watch it to its end; returns when it ended. Runs in a thread of the pod's own."""
        spec = table(pod["spec"])
        run = self.pods[name] = RunningPod(name, spec, self._folder / name, self._address())
        status: Table = {"phase": "Pending", "hostIP": "127.0.0.1"}
        try:
            self._run(run, secret, said, status)
        except _Waits as waits:
            state: JSON = {"waiting": {"reason": waits.reason, "message": str(waits)}}
            container: JSON = {
                "name": "module", "ready": False, "restartCount": 0, "image": waits.image, "imageID": "", "state": state,
            }  # fmt: skip
            said({**status, "containerStatuses": [container]})
        except (APIError, OSError, AssertionError):
            if not run.stopped.is_set():
                raise
            self.stop(name)  # it was deleted while it came up

    def _run(
        self,
        run: RunningPod,
        secret: Callable[[str], Table | None],
        said: Callable[[Table], None],
        status: Table,
    ) -> None:
        volumes = {str(each["name"]): self._volume(run, each, secret) for each in rows(run.spec["volumes"])}
        for each in rows(run.spec["initContainers"]):
            assert each["restartPolicy"] == "Always", "only sidecars are known here"
            run.containers[str(each["name"])] = self._container(run, each, volumes, secret, network="host")
        (only,) = rows(run.spec["containers"])
        module = run.containers["module"] = self._container(run, only, volumes, secret, network="none")
        for container in run.containers.values():
            if not run.stopped.is_set():
                container.start()
        if run.stopped.is_set():
            self.stop(run.name)
            return
        status |= {"phase": "Running", "podIP": run.ip, "podIPs": [{"ip": run.ip}]}
        said({**status, "containerStatuses": [_status(module, {"running": {}}, ready=True)]})
        with suppress(APIError):
            code = int(module.wait()["StatusCode"])
            if run.stopped.is_set():
                return
            module.reload()
            killed = bool(module.attrs["State"]["OOMKilled"])
            ended: JSON = {
                "exitCode": code,
                "reason": "OOMKilled" if killed else "Error" if code else "Completed",
            }
            said({
                **status, "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [_status(module, {"terminated": ended}, ready=False)],
            })  # fmt: skip
            run.containers["bridge"].remove(force=True, v=True)

    def stop(self, name: str) -> None:
        """End a pod and all that is of it; harmless when done twice."""
        run = self.pods.get(name)
        if run is None:
            return
        run.stopped.set()
        for container in list(run.containers.values()):  # it may still come up, and then ends itself
            with suppress(APIError):
                container.remove(force=True, v=True)
        shutil.rmtree(run.folder, ignore_errors=True)

    def kill(self, name: str, container: str = "module") -> None:
        """End a container of a pod from outside, as a node without memory would."""
        self.pods[name].containers[container].kill()

    def log(self, name: str, container: str, lines: int) -> str:
        """The end of what it printed."""
        found = self.pods[name].containers.get(container)
        if found is None:
            return ""
        with suppress(NotFound):
            return str(found.logs(tail=lines).decode("utf-8", "replace"))
        return ""

    def close(self) -> None:
        """End everything."""
        for name in list(self.pods):
            self.stop(name)
        self.engine.close()

    def _address(self) -> str:
        return f"127.{random.randint(64, 126)}.{random.randint(1, 250)}.{random.randint(1, 250)}"

    def _volume(self, run: RunningPod, volume: Table, secret: Callable[[str], Table | None]) -> Path:
        place = run.folder / str(volume["name"])
        if "persistentVolumeClaim" in volume:
            return self._claims[str(table(volume["persistentVolumeClaim"])["claimName"])]
        place.mkdir(parents=True)
        if "secret" in volume:
            asked = table(volume["secret"])
            found = secret(str(asked["secretName"]))
            if found is None:
                raise _Waits("CreateContainerConfigError", f"secret {asked['secretName']} not found")
            for item in rows(asked["items"]):
                target = place / str(item["path"])
                target.write_bytes(base64.b64decode(str(table(found["data"])[str(item["key"])])))
                mode = asked["defaultMode"]
                assert isinstance(mode, int)
                target.chmod(mode)
            place.chmod(0o755)
        else:
            assert table(volume["emptyDir"])["medium"] == "Memory"
            place.chmod(0o777)
        return place

    def _container(
        self,
        run: RunningPod,
        container: Table,
        volumes: Mapping[str, Path],
        secret: Callable[[str], Table | None],
        *,
        network: str,
    ) -> Container:
        reference = str(container["image"])
        walls = table(container["securityContext"])
        whole = table(run.spec["securityContext"])
        most = table(table(container["resources"])["limits"])
        assert walls["allowPrivilegeEscalation"] is False
        try:
            return self.engine.containers.create(
                reference.rpartition("/")[2],
                entrypoint=_texts(container["command"])[:1],
                command=_texts(container["command"])[1:],
                name=f"{run.name}-{container['name']}",
                labels={LABEL: run.name},
                environment=self._environment(run, container, secret),
                working_dir=str(container.get("workingDir") or "/"),
                user=f"{whole['runAsUser']}:{whole['runAsGroup']}",
                network_mode=network,
                read_only=bool(walls["readOnlyRootFilesystem"]),
                cap_drop=_texts(table(walls["capabilities"])["drop"]),
                security_opt=["no-new-privileges"],
                mem_limit=_size(str(most["memory"])),
                nano_cpus=int(str(most["cpu"]).removesuffix("m")) * 1_000_000,
                mounts=[_mounted(each, volumes) for each in rows(container["volumeMounts"])],
                log_config=LogConfig(type="json-file", config={"max-size": "1m"}),
            )
        except ImageNotFound as error:
            raise _Waits("ErrImagePull", f"failed to pull {reference}: not found", reference) from error

    def _environment(
        self, run: RunningPod, container: Table, secret: Callable[[str], Table | None]
    ) -> dict[str, str]:
        found = {"KUBERNETES_SERVICE_HOST": self.service[0], "KUBERNETES_SERVICE_PORT": self.service[1]}
        for each in rows(container.get("env")):
            if "value" in each:
                found[str(each["name"])] = str(each["value"])
                continue
            source = table(each["valueFrom"])
            if "fieldRef" in source:
                assert table(source["fieldRef"])["fieldPath"] == "status.podIP"
                found[str(each["name"])] = run.ip
            else:
                asked = table(source["secretKeyRef"])
                kept = secret(str(asked["name"]))
                assert kept is not None
                value = base64.b64decode(str(table(kept["data"])[str(asked["key"])]))
                found[str(each["name"])] = value.decode()
        return found


class _Waits(Exception):
    """A pod does not come up. `reason`: of the cluster's own words."""

    def __init__(self, reason: str, message: str, image: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.image = image


def _mounted(mount: Table, volumes: Mapping[str, Path]) -> Mount:
    """As a kubelet does, it makes what is not there, and follows nothing out of the volume."""
    volume = volumes[str(mount["name"])]
    source = volume / str(mount.get("subPath") or "")
    assert source.resolve().is_relative_to(volume.resolve()), mount
    assert source.is_dir(), mount
    return Mount(str(mount["mountPath"]), str(source), type="bind", read_only=bool(mount.get("readOnly")))


def _status(container: Container, state: JSON, *, ready: bool) -> JSON:
    return {
        "name": "module", "ready": ready, "restartCount": 0, "image": str(container.name), "imageID": "", "state": state,
    }  # fmt: skip


def _texts(found: JSON) -> list[str]:
    assert isinstance(found, list)
    return [str(each) for each in found]


def _size(text: str) -> int:
    for ending, factor in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if text.endswith(ending):
            return int(text.removesuffix(ending)) * factor
    return int(text)
