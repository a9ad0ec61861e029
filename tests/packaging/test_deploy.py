"""The files of deploy/: what can be held without a cluster or a registry. Kubernetes' own kinds by their published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from iact.cli import parse
from iact.cli.options import Chosen
from iact.sandbox.kubernetes.manifest import NAME, NAME_LABEL, POLICY
from iact.settings import Settings, load, variable_of
from tests.acceptance.product import ROOT
from tests.kubernetes.cluster import SCHEMAS

DEPLOY: Final = ROOT / "deploy"
FILES: Final = sorted(DEPLOY.glob("kubernetes/*.yaml"))
VARIABLES: Final = {variable_of(field) for field in Settings.model_fields}

Found = dict[str, Any]


def documents(*files: Path) -> list[Found]:
    return [found for file in files for found in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def pods(found: Found) -> Iterator[Found]:
    """The templates of pods in one document, each as a pod."""
    spec = found.get("spec", {})
    templates = [spec.get("template"), spec.get("headGroupSpec", {}).get("template")]
    templates += [group["template"] for group in spec.get("workerGroupSpecs", ())]
    for template in filter(None, templates):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            **template,
            "metadata": {"name": "x", **template["metadata"]},
        }


def containers(pod: Found) -> list[Found]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def environment(container: Found) -> dict[str, str]:
    """Its variables, where one is another's or a field's by an example of it."""
    found = {each["name"]: str(each.get("value", "iact-0")) for each in container.get("env", ())}
    return {name: value.replace("$(POD_NAME)", "iact-0") for name, value in found.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_document_is_what_the_published_schemas_say(file: Path) -> None:
    for found in documents(file):
        plain = json.loads(json.dumps(found))
        if (
            found["apiVersion"] != "ray.io/v1"
        ):  # KubeRay's schema is in no package; its pods are Kubernetes' own
            kubernetes_validate.validate(plain, SCHEMAS, strict=True)
        for pod in pods(plain):
            kubernetes_validate.validate(pod, SCHEMAS, strict=True)


def test_what_refers_to_something_refers_to_what_is_there() -> None:
    everything = documents(*FILES)
    there = {(found["kind"], found["metadata"]["name"]) for found in everything}
    namespaces = {found["metadata"].get("namespace", "iact") for found in everything}
    assert namespaces == {"iact"} == {name for kind, name in there if kind == "Namespace"}
    made_by_people = {("Secret", name) for name in ("iact-model", "iact-store", "iact-seal")}
    told = "".join(file.read_text(encoding="utf-8") for file in FILES)
    for found in everything:
        for pod in pods(found):
            spec = pod["spec"]
            assert ("ServiceAccount", spec["serviceAccountName"]) in there
            volumes = {each["name"]: each for each in spec["volumes"]}
            for volume in volumes.values():
                if "persistentVolumeClaim" in volume:
                    assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in there
                if "secret" in volume:
                    assert ("Secret", volume["secret"]["secretName"]) in made_by_people
            for container in containers(pod):
                assert {each["name"] for each in container["volumeMounts"]} <= set(volumes)
                assert container["securityContext"]["allowPrivilegeEscalation"] is False
                for source in container.get("envFrom", ()):
                    assert ("Secret", source["secretRef"]["name"]) in made_by_people
            assert spec["securityContext"]["runAsNonRoot"], "the namespace takes no others"
            assert pod["metadata"]["labels"][NAME_LABEL] == "iact", "modules let in nobody else"
    for name in ("iact-store", "iact-seal"):
        assert f"create secret generic {name}" in told


def test_the_policy_is_the_one_that_the_program_asks_for() -> None:
    (policy,) = [found for found in documents(*FILES) if found["kind"] == "NetworkPolicy"]
    assert policy["metadata"]["name"] == POLICY
    assert policy["spec"]["podSelector"]["matchLabels"] == {NAME_LABEL: NAME}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["egress"] == []
    (opening,) = policy["spec"]["ingress"]
    assert opening["from"] == [{"podSelector": {"matchLabels": {NAME_LABEL: "iact"}}}]


def test_every_program_that_is_started_reads_its_settings_and_its_command(tmp_path: Path) -> None:
    """Kubernetes and compose alike: no variable that means nothing, no command that there is not."""
    compose = yaml.safe_load((DEPLOY / "hosts" / "compose.yaml").read_text(encoding="utf-8"))
    started: list[tuple[list[str], Mapping[str, str]]] = []
    for name, service in compose["services"].items():
        if "build" in service:
            started.append((service["command"], {"IACT_DATA": "/var/lib/iact", **service["environment"]}))
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or source == "./deploy/hosts/seal.key", name
        assert set(service.get("depends_on", ())) <= set(compose["services"])
    for found in documents(*FILES):
        for pod in pods(found):
            for container in containers(pod):
                command = container.get("command") or container.get("args") or ["--version"]
                if command[:2] == ["sh", "-c"]:
                    words = command[2].replace('"$POD_IP:6379"', "10.0.0.1:6379").split()
                    command = words[2:] if words[:2] == ["exec", "iact"] else []
                started.append((command, environment(container)))
    commands = []
    for command, variables in started:
        assert {name for name in variables if name.startswith("IACT_")} <= VARIABLES
        given = {name: value for name, value in variables.items() if not str(value).startswith("${")}
        settings = load(data=str(tmp_path), environment=given)
        if settings.sandbox == "kubernetes":
            made = settings.kubernetes.namespace(settings.runtime)
            data = Path(given["IACT_DATA"])
            assert made.folder == data.name, "where the claim has the data directory"
            assert (made.runtime, settings.host) == ("gvisor", "iact-0")
        if command and command != ["--version"]:
            chosen = parse(command)
            assert isinstance(chosen, Chosen)
            commands.append(" ".join(command[:2]))
    assert sorted(set(commands)) == ["cluster host", "serve --cluster", "serve --port"]


def test_the_hosts_of_the_compose_file_have_a_key_and_a_store_and_an_engine_each() -> None:
    compose = yaml.safe_load((DEPLOY / "hosts" / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    hosts = [each for each in services.values() if each["command"][:2] == ["cluster", "host"]]
    assert len(hosts) == 2
    members = [*hosts, services["gateway"]]
    assert len({each["environment"]["IACT_HOST"] for each in members}) == 3
    assert len({each["environment"]["IACT_STORE"] for each in members}) == 1
    for each in members:
        assert "./deploy/hosts/seal.key:/var/lib/iact/seal.key" in each["volumes"]
        assert "privileged" not in each
    for each in hosts:
        (engine,) = [name for name in each["depends_on"] if name.startswith("engine")]
        assert set(services[engine]["volumes"]) > set(each["volumes"]) - {
            "./deploy/hosts/seal.key:/var/lib/iact/seal.key"
        }
        assert services[engine]["network_mode"] == "none"
