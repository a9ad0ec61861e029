"""A session whose tools run as pods, through the whole product; the cluster is the tests' own (`tests.kubernetes.cluster`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, acknowledged, kill, until
from tests.acceptance.test_scenes import shell
from tests.endpoint import Endpoint, Reply
from tests.kubernetes.cluster import FakeCluster, Fault


@pytest.fixture
def cluster(stage: Stage, tmp_path: Path) -> Iterator[FakeCluster]:
    """The volume of the claim `data` is where the products of the stage have their data directories."""
    with closing(connect()) as client:
        image.ensure(client, print, source="debian")
    (tmp_path / "cluster").mkdir()
    with closing(FakeCluster(tmp_path / "cluster", {"data": stage.folder})) as made:
        yield made
        assert made.names("sandboxes") == made.names("secrets") == [], "each session took away what it had"


def _product(stage: Stage, cluster: FakeCluster, endpoint: Endpoint) -> Product:
    made = stage.product(endpoint)
    settings = {
        "IACT_SANDBOX": "kubernetes",
        "KUBECONFIG": str(cluster.kubeconfig),
        "IACT_KUBERNETES_IMAGES": "registry.test/iact",
        "IACT_KUBERNETES_VOLUME": f"data/{made.data.name}",
        "IACT_HOST": "host-1",
    }
    return replace(made, settings={**made.settings, **settings})


def test_a_session_works_in_pods_and_goes_on_when_the_cluster_refuses(
    stage: Stage, cluster: FakeCluster
) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                shell("echo $((6 * 7)) > made && cat made && id -u && ls /sys/class/net"),
                "It says 42.",
                shell("cat made"),
                "The cluster said no.",
                shell("cat made"),
                "It still says 42.",
            ]
        }
    )
    product = _product(stage, cluster, endpoint)
    answer = product.ask("Work it out.")
    assert answer.reply == "It says 42."
    (result,) = [record for record in answer.records if record.kind == "result"]
    assert result.body.split() == ["42", "65532", "lo"]
    assert (answer.workspace / "made").read_text(encoding="utf-8") == "42\n"
    assert cluster.names("sandboxes") == []

    cluster.faults = lambda verb, resource: (
        Fault(403, message="exceeded quota: iact-modules")
        if (verb, resource) == ("create", "sandboxes")
        else None
    )
    refused = product.ask("Look again.", session=answer.session)
    assert refused.reply == "The cluster said no."
    assert any("exceeded quota: iact-modules" in record.body for record in refused.records)
    cluster.faults = lambda verb, resource: None
    assert product.ask("And now?", session=answer.session).reply == "It still says 42."
    assert product.run("replay", answer.session, "--verify").status == 0


@pytest.mark.no_prefix_law("the killed server's request is asked again")
def test_a_killed_server_leaves_no_pod_behind_and_its_session_goes_on(
    stage: Stage, cluster: FakeCluster
) -> None:
    busy = Reply("I wait.\n\n```shell.run\ntouch here; sleep 3600\n```", repeat=True)
    product = _product(stage, cluster, stage.endpoint({"/": [busy]}, crashes=True))
    with product.serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None, "since": 0})
        acknowledged(socket, {"type": "say", "text": "Wait."})
        until(
            lambda: bool(list(product.data.glob("sessions/*/workspace/here"))), "the tool at work", within=120
        )
        assert kill(server.process)
    assert len(cluster.names("sandboxes")) >= 1
    assert product.run("module", "list", seconds=120).status == 0
    assert cluster.names("sandboxes") == cluster.names("secrets") == []
    until(lambda: cluster.names("pods") == [], "the pods to end")


def test_settings_that_lead_nowhere_are_told(stage: Stage) -> None:
    """No images, no volume, no cluster: each is a sentence with what to set."""
    product = stage.product("http://127.0.0.1:9/v1", IACT_SANDBOX="kubernetes")
    said = [product.run("module", "list")]
    images = {**product.settings, "IACT_KUBERNETES_IMAGES": "registry.test/iact"}
    said.append(replace(product, settings=images).run("module", "list"))
    nowhere = {**images, "IACT_KUBERNETES_VOLUME": "data", "KUBECONFIG": "/nowhere"}
    said.append(replace(product, settings=nowhere).run("module", "list"))
    assert [ran.status for ran in said] == [1, 1, 1]
    wanted = ("IACT_KUBERNETES_IMAGES", "IACT_KUBERNETES_VOLUME", "KUBECONFIG")
    for ran, word in zip(said, wanted, strict=True):
        assert word in ran.sentence
