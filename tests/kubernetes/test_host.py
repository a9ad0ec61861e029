"""Modules in pods: what they can do, and what is left, whatever befalls the cluster (`cluster`, which is the tests' own)."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.core.ports import Permit, Right
from iact.sandbox import owner, socket_folder
from iact.sandbox.kubernetes import bridge
from iact.sandbox.kubernetes.host import KubernetesHost, PodInstance
from iact.sandbox.kubernetes.key_pair import KeyPair
from iact.sandbox.kubernetes.manifest import CLAIM
from iact.sandbox.secrets import Secrets
from tests.kubernetes.cluster import FakeCluster, Fault
from tests.kubernetes.conftest import Hosts
from tests.kubernetes.kubelet import rows, table
from tests.sandbox.calling import python, shell, until, write_module
from tests.sandbox.inside import called
from tests.sandbox.outside import PUBLIC, internet
from tests.sandbox.test_egress_inside import VISITOR, greet

SECRET = "a value of 31 characters, 4f9be"


async def start(
    host: KubernetesHost,
    workspace: Path,
    name: str = "shell",
    *,
    right: Right = "work",
    egress: Sequence[str] = (),
    secrets: Sequence[str] = (),
    permit: Permit | None = None,
    digest: str | None = None,
) -> PodInstance:
    return await host.start(
        name, session=workspace.parent.name, workspace=workspace, report=print, right=right, egress=egress,
        secrets=secrets, permit=permit, digest=digest,
    )  # fmt: skip


async def lost(instance: PodInstance) -> str:
    """Wait until an instance is lost; why."""
    said: list[str] = []

    async def told() -> bool:
        said.append(await instance.why_lost() or "")
        return bool(said[-1])

    await until(told)
    return said[-1]


async def gone(cluster: FakeCluster) -> None:
    """Wait until no pod is left."""

    async def empty() -> bool:
        return cluster.names("pods") == []

    await until(empty)


def test_a_module_runs_in_a_pod_within_its_walls(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    """A worker and a viewer of one agent: what they share, what they don't, and nothing else of the volume."""

    async def run() -> None:
        worker, viewer = await start(host, workspace), await start(host, workspace, right="look")
        said = await shell(
            worker,
            "echo 42 > made; echo shared > /tmp/given; id -u; ls /sys/class/net; ls /run; ls /workspace; "
            "grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status | cut -f2; ulimit -n; "
            "for each in /x /run/x /module/x; do touch $each 2>&1 | grep -c 'Read-only'; done; "
            "ls /run/bridge /var/run/secrets/kubernetes.io 2>&1 | grep -c 'No such file'; env | grep -ciE 'token|pem'",
        )
        seen = ["65532", "lo", "iact", "made", "0" * 16, "1", "1024", "1", "1", "1", "2", "0"]
        assert said.output.splitlines() == seen
        assert (workspace / "made").read_text() == "42\n"
        looked = await shell(
            viewer, "cat made /tmp/given; touch mine; touch /tmp/mine; touch $TMPDIR/mine && echo own"
        )
        assert looked.output.splitlines()[:2] == ["42", "shared"]
        assert looked.output.count("Read-only file system") == 2
        assert looked.output.splitlines()[-1] == "own"
        for name in cluster.names(
            "sandboxes"
        ):  # nothing here may be more than the policy of the namespace lets pods have
            spec = table(table(cluster.object("pods", name)["spec"]))
            assert (spec["runtimeClassName"], spec["automountServiceAccountToken"]) == ("gvisor", False)
            assert all("hostPath" not in each for each in rows(spec["volumes"]))
        await host.end_session(workspace.parent.name)
        assert cluster.names("sandboxes") == cluster.names("secrets") == []
        assert await worker.why_lost() == "The module shell was stopped."
        await gone(cluster)

    loop.run(run())


def test_the_way_out_leads_through_the_hosts_proxy_alone(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path, tmp_path: Path
) -> None:
    asked: list[tuple[str, int]] = []

    async def permit(host: str, port: int) -> bool:
        asked.append((host, port))
        return host in ("example.com", "inner.example", "other.example")

    async def run() -> None:
        code = write_module(
            tmp_path / "shipped", "visitor", VISITOR, needs='workspace = "none"\negress = ["example.com:80"]'
        )
        names = {"example.com": [PUBLIC], "inner.example": ["127.0.0.1"], "other.example": [PUBLIC]}
        async with internet(greet, names) as world:
            host = hosts(shipped=code, outside=world.outside)
            closed = await start(host, workspace, "visitor")
            async with called(closed) as caller:
                assert json.loads(await caller.text("ways")) == {
                    "socket": False,
                    "proxy": False,
                    "network": False,
                }
            instance = await start(host, workspace, "visitor", egress=["example.com:80"], permit=permit)
            assert instance is not closed
            async with called(instance) as caller:
                assert json.loads(await caller.text("ways")) == {
                    "socket": True,
                    "proxy": True,
                    "network": False,
                }
                for _ in range(6):  # more than the ways that are held open at a time
                    assert await caller.text("get", url="http://example.com:80/") == "hello"
                assert await caller.text("get", url="http://other.example:80/") == "hello"
                for target in ("inner.example:80", "elsewhere.example:80", "169.254.169.254:80"):
                    said = await caller.text("raw", text=f"CONNECT {target} HTTP/1.1\r\n\r\n")
                    assert said.startswith(("HTTP/1.1 403", "HTTP/1.1 502")), said
                assert await caller.text("raw", text="nonsense\r\n\r\n")
                assert await caller.text("get", url="http://example.com:80/") == "hello"
            assert set(world.dialled) == {(PUBLIC, 80)}
            assert {("other.example", 80), ("elsewhere.example", 80)} <= set(asked)
            await host.close()

    loop.run(run())


def test_a_secret_is_in_the_pod_that_it_was_granted_to_and_nowhere_else(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, data: Path, workspace: Path
) -> None:
    async def run() -> None:
        Secrets(data).store("API_KEY", SECRET)
        instance = await start(host, workspace, secrets=["API_KEY"])
        assert (await shell(instance, 'printf %s "$API_KEY"')).output == SECRET
        told = json.dumps([cluster.object(kind, instance.pod) for kind in ("sandboxes", "pods")])
        assert SECRET not in told
        assert cluster.names("secrets") == [instance.pod]
        assert (await shell(await start(host, workspace, right="look"), 'echo "[$API_KEY]"')).output == "[]\n"
        await host.end_session(workspace.parent.name)
        assert cluster.names("secrets") == []

    loop.run(run())


def test_an_app_is_reached_through_the_tunnel(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    source = (
        "def app(environ, start_response):\n    start_response('200 OK', [])\n    return [b'x' * 300_000]\n"
    )

    def get(instance: PodInstance, app: str) -> tuple[int, int]:
        checked = instance.open_app(app)
        assert checked is not None
        connection = http.client.HTTPConnection("app", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(checked.target.removeprefix("unix:"))
        checked.close()
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, len(answer.read())

    async def run() -> None:
        instance = await start(host, workspace, "app")
        async with called(instance) as caller:
            told = await caller.text("serve", source=source)
            found = re.search(r"http://([0-9a-f]{16})\.localhost", told)
            assert found is not None, told

            async def open_() -> bool:
                checked = instance.open_app(found[1])
                if checked is not None:
                    checked.close()
                return checked is not None

            await until(open_)
            assert await asyncio.to_thread(get, instance, found[1]) == (200, 300_000)
        assert instance.open_app("0" * 16) is None
        await host.end_session(workspace.parent.name)

    loop.run(run())


def test_nobody_but_its_host_gets_into_a_pod_and_nobody_else_can_be_it(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    async def knock(address: str, context: ssl.SSLContext | None) -> None:
        reader, writer = await asyncio.open_connection(address, bridge.PORT, ssl=context)
        try:
            await bridge.send(writer, b"module.sock")
            await bridge.send(writer, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            await bridge.receive(reader)
        finally:
            writer.close()

    async def run() -> None:
        instance = await start(host, workspace)
        address = str(table(cluster.object("pods", instance.pod)["status"])["podIP"])
        stranger, naked = KeyPair.make("iact host host-1"), ssl.create_default_context()
        naked.check_hostname, naked.verify_mode = False, ssl.CERT_NONE
        its = table(cluster.object("secrets", instance.pod)["data"])
        pod = base64.b64decode(str(its["pod.pem"])).decode()
        certificate = pod[pod.index("-----BEGIN CERTIFICATE") :]
        for context in (naked, stranger.meets(certificate), None):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await knock(address, context)
        # Who has its address, and not its key, is not taken for it.
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection(address, bridge.PORT, ssl=host._pair.meets(stranger.certificate))
        assert (await shell(instance, "echo still here")).output == "still here\n"
        await host.end_session(workspace.parent.name)

    loop.run(run())


def test_a_hostile_module_gets_nothing_of_the_host_out_of_its_tunnel(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    """It puts links and floods where sockets are looked for; its own end is all that comes of it."""

    async def run() -> None:
        instance = await start(host, workspace, "app")
        shell_of = await start(host, workspace)
        hostile = """
import os, socket
for name in ("app-%016x.sock" % n for n in range(3000)):
    os.symlink("/etc/passwd", "/run/iact/" + name)
os.rename("/run/iact/module.sock", "/run/iact/real.sock")
os.symlink("/run/bridge/pod.pem", "/run/iact/module.sock")
print("done")
"""
        assert await python(shell_of, hostile) == "done"
        folder = shell_of.folder
        assert sorted(os.listdir(folder)) == ["module.sock"]
        assert (folder / "module.sock").is_socket()
        reader, writer = await socket_folder.dial(folder, "module.sock")
        assert await reader.read() == b"", "what the link leads to is not what it says"
        writer.close()
        await shell_of.stop()
        again = await start(host, workspace)
        assert (await shell(again, "ls /run/iact")).output == "module.sock\n"
        assert await instance.why_lost() is None
        await host.end_session(workspace.parent.name)
        await gone(cluster)

    loop.run(run())


def test_a_pod_that_ends_is_told_and_another_takes_its_place(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    async def run() -> None:
        said: list[str] = []
        for how in ("killed", "deleted", "drained", "by itself"):
            instance = await start(host, workspace)
            if how == "killed":
                cluster.kubelet.kill(instance.pod)
            elif how == "deleted":
                await asyncio.to_thread(cluster.delete, "sandboxes", instance.pod)
            elif how == "drained":
                await asyncio.to_thread(cluster.delete_node)
            else:
                with pytest.raises(grpc.RpcError):
                    await shell(instance, "kill -9 1; kill -9 -1; sleep 9", seconds=5)
            said.append(await lost(instance))
            await host.end_session(workspace.parent.name)
        assert said[0].startswith("The module shell ended with status 137.")
        assert "was deleted" in said[1] or "is gone" in said[1]
        assert "was deleted" in said[2] or "is gone" in said[2]
        assert re.fullmatch(r"The module shell ended with status \d+\..*", said[3]), said
        assert cluster.names("secrets") == []

    loop.run(run())


LOSSES = {
    "unavailable": [Fault(503), Fault(429)],
    "answers lost": [Fault(after=True, cut=True)],
    "cut": [Fault(cut=True)],
    "lost behind a proxy": [Fault(504, after=True)],
    "slow": [Fault(seconds=0.3)] * 50,
    "nonsense": [Fault(status=200), Fault(status=200)],
}


@pytest.mark.parametrize("how", LOSSES)
def test_a_cluster_that_stumbles_is_asked_again_and_nothing_is_made_twice(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path, how: str
) -> None:
    """Each kind of request stumbles for itself, on the way in and on the way out."""
    waiting: dict[tuple[str, str], list[Fault]] = {}

    def faults(verb: str, resource: str) -> Fault | None:
        if how == "nonsense" and verb not in ("get", "list"):
            return None
        left = waiting.setdefault((verb, resource), list(LOSSES[how]))
        return left.pop() if left else None

    async def run() -> None:
        host = hosts(asking=20)
        cluster.faults = faults
        instance = await start(host, workspace)
        assert cluster.names("sandboxes") == cluster.names("secrets") == [instance.pod]
        assert (await shell(instance, "echo there")).output == "there\n"
        await host.end_session(workspace.parent.name)
        assert cluster.names("sandboxes") == cluster.names("secrets") == []

    loop.run(run())


def test_what_the_cluster_refuses_is_said_with_the_remedy_and_leaves_nothing(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(match: str, *, asking: float = 2, coming_up: float = 3) -> None:
        host = hosts(asking=asking, coming_up=coming_up)
        with pytest.raises(SandboxUnavailable, match=match):
            await start(host, workspace)
        await host.close()
        assert not [
            each for each in (await host._new_folder()).parent.glob("*") if not each.name.endswith("-tmp")
        ]

    async def run() -> None:
        for verb, resource in (
            ("create", "secrets"),
            ("create", "sandboxes"),
            ("get", "sandboxes"),
            ("list", "sandboxes"),
        ):
            message = "exceeded quota: iact-modules" if resource == "sandboxes" else "forbidden"
            cluster.faults = lambda v, r, at=(verb, resource), message=message: (  # type: ignore[misc]
                Fault(403, message=message) if (v, r) == at else None
            )
            await refused(rf"does not let iact .* in the namespace iact \({message}\).*role and the quota")
            cluster.faults = lambda v, r: None
            assert cluster.names("sandboxes") == cluster.names("secrets") == []
        cluster.faults = lambda v, r: Fault(seconds=30)
        await refused("did not answer within 1 seconds", asking=1)
        cluster.faults = lambda v, r: Fault(422) if (v, r) == ("create", "sandboxes") else None
        await refused("refused to create sandboxes .HTTP 422: made to fail")
        cluster.faults = lambda v, r: None
        cluster.controller = False
        await refused("Install agent-sandbox")
        cluster.controller = True
        with monkeypatch.context() as patched:
            patched.setattr("iact.sandbox.docker.image._base_tag", lambda *_: "iact-base:never-made")
            await refused("can't be fetched .*iact image push")
        policy = cluster.objects["networkpolicies", "iact-modules"]
        cluster.objects["networkpolicies", "iact-modules"] = {
            **policy,
            "spec": {**table(policy["spec"]), "egress": [{}]},
        }
        await refused("lets modules out, so none are started")
        del cluster.objects["networkpolicies", "iact-modules"]
        await refused("has no network policy iact-modules")
        cluster.objects["networkpolicies", "iact-modules"] = policy
        monkeypatch.setenv("KUBECONFIG", "/nowhere")
        await refused("the address of its API is not configured")

    loop.run(run())


def test_a_network_that_enforces_no_policy_is_found_out(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path
) -> None:
    """The pod's sidecar reaches the API's port, which the policy forbids; so nothing of the session's runs there."""

    async def run() -> None:
        before = cluster.kubelet.service
        cluster.kubelet.service = ("127.0.0.1", str(cluster.port))
        host = hosts()
        with pytest.raises(SandboxUnavailable, match="node-1 reach the cluster's network"):
            await start(host, workspace)
        cluster.kubelet.service = before
        assert (await shell(await start(host, workspace), "echo 1")).output == "1\n"
        await host.close()

    loop.run(run())


def test_while_the_api_is_gone_modules_go_on_and_what_ended_is_removed_when_it_is_back(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path
) -> None:
    async def run() -> None:
        host = hosts(lease=1)
        instance = await start(host, workspace)
        cluster.go_away()
        host._api.patience = 0.5
        try:
            assert (await shell(instance, "echo alone")).output == "alone\n"
            assert await start(host, workspace) is instance
            with pytest.raises(SandboxUnavailable, match="did not answer within"):
                await start(host, workspace, "files")
            await host.end_session(workspace.parent.name)
            assert await instance.why_lost() == "The module shell was stopped."
            assert cluster.names("sandboxes") == [instance.pod]
        finally:
            cluster.come_back()
            host._api.patience = 20
        await gone(cluster)
        assert cluster.names("sandboxes") == cluster.names("secrets") == []
        await host.close()

    loop.run(run())


def test_names_that_others_took_are_left_to_them(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    """Somebody makes a secret, and then a Sandbox, of the very name that is about to be made."""
    taken: list[tuple[str, str]] = []

    def take(resource: str, name: str) -> None:
        if resource not in {kind for kind, _ in taken}:
            taken.append((resource, name))
            cluster.objects[resource, name] = {
                "metadata": {"name": name, "uid": "theirs", "labels": {"app": "theirs"}}
            }

    def take_all(resource: str, name: str) -> None:
        taken.append((resource, name))
        cluster.objects.setdefault((resource, name), {"metadata": {"name": name, "labels": {}}})

    async def run() -> None:
        cluster.before_create = take
        instance = await start(host, workspace)
        assert [kind for kind, _ in taken] == ["secrets", "sandboxes"]
        assert instance.pod not in [name for _, name in taken]
        cluster.before_create = take_all
        with pytest.raises(SandboxUnavailable, match="are already taken in the namespace"):
            await start(host, workspace, "files")
        await host.end_session(workspace.parent.name)
        cluster.before_create = lambda resource, name: None
        for each in taken:
            assert cluster.objects.pop(each)["metadata"], "it is still there"
        assert cluster.names("sandboxes") == cluster.names("secrets") == []

    loop.run(run())


CHILD = """
import asyncio, sys
from pathlib import Path
from iact.sandbox.kubernetes.host import KubernetesHost
from tests.kubernetes.conftest import PLACE

async def main():
    host = KubernetesHost(Path(sys.argv[1]), PLACE, host=sys.argv[3])
    await host.start("shell", session=sys.argv[4], workspace=Path(sys.argv[2]), report=lambda line: None)
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def label(cluster: FakeCluster, name: str, wanted: str) -> str:
    """The value of a label of the Sandbox `name`."""
    return str(table(table(cluster.object("sandboxes", name)["metadata"])["labels"])[wanted])


def test_what_a_killed_process_left_is_removed_by_its_successor_or_by_whoever_takes_its_session(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, data: Path, workspace: Path
) -> None:
    def child(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CHILD, str(data), str(workspace), name, workspace.parent.name]
        made = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        assert made.stdout is not None
        with made.stdout:
            assert made.stdout.readline() == b"up\n"
        return made

    async def run() -> None:
        first = await asyncio.to_thread(child, "host-1")
        left = cluster.names("sandboxes")
        while_it_lives = hosts("host-1")
        await while_it_lives.open()
        assert cluster.names("sandboxes") == left, "it lives"

        claim = data / owner.CLAIMS / label(cluster, left[0], CLAIM)
        hidden = claim.rename(data / "hidden")
        await hosts("host-1").open()
        assert cluster.names("sandboxes") == left, "its process lives, though nothing is known of its claim"
        hidden.rename(claim)

        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        other = hosts("host-2")
        await other.open()
        assert cluster.names("sandboxes") == left, "nobody knows from there whether it lives"
        await hosts("host-1").open()
        assert cluster.names("sandboxes") == cluster.names("secrets") == []
        # Of a host that is not heard of any more, whoever takes the session over removes what it runs, and waits for the end.
        await gone(cluster)
        second = await asyncio.to_thread(child, "host-3")
        (theirs,) = cluster.names("pods")
        cluster.slow_ends.clear()
        taking = asyncio.create_task(start(other, workspace))

        async def ending() -> bool:
            return cluster.names("sandboxes") == []

        await until(ending)
        assert cluster.names("pods") == [theirs], "no other is started beside it"
        cluster.slow_ends.set()
        instance = await taking
        assert cluster.names("pods") == [instance.pod]
        assert (await shell(instance, "echo mine")).output == "mine\n"
        os.kill(second.pid, signal.SIGKILL)
        second.wait()
        cluster.slow_ends.clear()
        hasty = hosts("host-4", coming_up=0.5)
        with pytest.raises(SandboxUnavailable, match="another host started for this session still exist"):
            await start(hasty, workspace)
        cluster.slow_ends.set()
        await other.close()

    loop.run(run())


def test_what_a_host_left_ends_by_itself_and_what_it_uses_does_not(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path
) -> None:
    async def run() -> None:
        host = hosts(lease=2)
        instance = await start(host, workspace)
        spec = table(cluster.object("sandboxes", instance.pod)["spec"])
        first = str(spec["shutdownTime"])

        async def moved() -> bool:
            return str(spec["shutdownTime"]) > first

        await until(moved)
        assert datetime.fromisoformat(str(spec["shutdownTime"])) > datetime.now(UTC)
        await asyncio.to_thread(cluster.expire, datetime.now(UTC) + timedelta(hours=1))
        await gone(cluster)
        assert "is gone" in await lost(instance)
        await host.close()

    loop.run(run())


def test_a_pool_of_pods_waits_for_sessions(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, workspace: Path
) -> None:
    async def run() -> None:
        host = hosts(pool=1)
        await host.open()
        host.pool.fill()

        async def ready() -> bool:
            return host.pool.ready == 1

        await until(ready, seconds=60)
        waiting = set(cluster.names("sandboxes"))
        entry = next(each for each in await host.catalogue() if each.name == "shell")
        created = cluster.asked.count(("create", "sandboxes"))
        instance = await start(host, workspace, digest=entry.digest)
        assert instance.pod in waiting
        assert cluster.asked.count(("create", "sandboxes")) == created
        assert (await shell(instance, "echo pooled > made; pwd")).output == "/workspace\n"
        assert (workspace / "made").read_text() == "pooled\n"
        bears = table(table(cluster.object("sandboxes", instance.pod)["metadata"])["labels"])
        assert bears["iact/session"] == workspace.parent.name
        await host.close()
        await gone(cluster)

    loop.run(run())


def test_a_module_that_prints_its_secret_and_ends_before_it_serves_is_told_without_it(
    loop: asyncio.Runner, hosts: Hosts, cluster: FakeCluster, data: Path, workspace: Path, tmp_path: Path
) -> None:
    source = "import os\nprint('key', os.environ['API_KEY'], flush=True)\nraise SystemExit(3)\n"

    async def run() -> None:
        Secrets(data).store("API_KEY", SECRET)
        host = hosts(shipped=write_module(tmp_path / "shipped", "broken", source))
        with pytest.raises(ModuleLost) as lost:
            await start(host, workspace, "broken", secrets=["API_KEY"])
        assert SECRET not in str(lost.value) + lost.value.log
        assert "ended" in str(lost.value)
        await host.close()
        assert cluster.names("sandboxes") == cluster.names("secrets") == []

    loop.run(run())


def test_a_folder_that_others_made_for_its_sockets_is_not_used(
    loop: asyncio.Runner, host: KubernetesHost, cluster: FakeCluster, workspace: Path
) -> None:
    """All users of a machine can make a folder of that name beside ours."""

    async def run() -> None:
        place = (await host._new_folder()).parent
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
        with pytest.raises(SandboxUnavailable, match="it is not ours alone"):
            await start(host, workspace)
        place.rmdir()
        assert (await shell(await start(host, workspace), "echo 1")).output == "1\n"
        await host.end_session(workspace.parent.name)
        await host.close()
        assert not place.exists()

    loop.run(run())
