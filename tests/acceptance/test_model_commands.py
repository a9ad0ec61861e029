"""`iact model …`: models of the hub, of a file and of a provider are added, tried, chosen and removed.

The hub is a server that speaks its protocol; the provider is a scripted endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.settings import load
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, Ran
from tests.endpoint import Request
from tests.iact.models.hub_server import Hub, gguf, hub

REPOSITORY = "someone/Tiny-GGUF"
CONTENT = gguf(name="Tiny", weights=b"w" * 200_000)


@pytest.fixture
def there() -> Iterator[Hub]:
    with hub() as made:
        made.repositories[REPOSITORY] = {"tiny-q4.gguf": CONTENT, "tiny-q8.gguf": gguf(weights=b"other")}
        made.repositories["someone/Page-GGUF"] = {"page.gguf": b"<html>"}
        yield made


def listed(product: Product) -> dict[str, dict[str, object]]:
    """The models by name, as `model list --json` prints them."""
    ran = product.run("model", "list", "--json")
    assert ran.status == 0, ran
    return {row["name"]: row for row in json.loads(ran.stdout)}


def refused(ran: Ran, says: str, status: int = 2) -> None:
    assert (ran.status, says in ran.sentence) == (status, True), ran


def test_a_file_of_the_hub_is_added_used_and_removed(stage: Stage, there: Hub, tmp_path: Path) -> None:
    product = stage.product(HF_ENDPOINT=there.url, IACT_CACHE=str(tmp_path / "cache"), **NO_MODULES)
    product.settings.pop("IACT_MODEL")
    refused(product.run("model", "add", "hub:someone/Else"), "There is no repository someone/Else")
    refused(product.run("model", "add", f"hub:{REPOSITORY}"), "tiny-q8.gguf")
    refused(product.run("model", "add", "hub:someone/Page-GGUF"), "is not a GGUF file")
    refused(product.run("model", "add", "somebody"), "hub:OWNER/NAME, file:PATH, or one of openai")
    there.breaks.append(100_000)
    refused(product.run("model", "add", f"hub:{REPOSITORY}:q4"), "can't be downloaded", 1)

    added = product.run("model", "add", f"hub:{REPOSITORY}:q4", "--name", "tiny")
    assert (added.status, added.stdout) == (0, "tiny\n"), added
    assert "licence apache-2.0, SHA-256" in added.stderr
    assert there.ranges()[-1] != "bytes=0-", "the second attempt goes on where the first broke off"
    row = listed(product)["tiny"]
    path = Path(str(row["path"]))
    assert path.read_bytes() == CONTENT
    assert (row["source"], row["licence"]) == (f"hub:{REPOSITORY}:tiny-q4.gguf", "apache-2.0")
    assert (row["size"], row["in_use"]) == (len(CONTENT), False)
    assert row["sha256"] == there.digest(REPOSITORY, "tiny-q4.gguf")

    # The settings of the environment come first, and say so.
    refused(product.run("model", "use", "tiny"), "IACT_EMBEDDED")
    product.settings["IACT_EMBEDDED"] = ""
    assert product.run("model", "use", "tiny").stdout == "tiny answers from the next message on.\n"
    assert load(data=str(product.data), environment={}).embedded == "tiny"
    assert listed(product)["tiny"]["in_use"]
    assert "* tiny" in product.run("model", "list").stdout
    refused(product.run("model", "remove", "tiny"), "the model that answers")
    assert product.run("model", "use", "off").status == 0
    removed = product.run("model", "remove", "tiny")
    assert (removed.status, str(path) in removed.stdout) == (0, True), removed
    assert not path.parent.exists()
    assert "tiny" not in listed(product)
    refused(product.run("model", "use", "tiny"), "There is no model 'tiny'")


def test_a_file_of_ones_own_is_never_deleted(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(IACT_CACHE=str(tmp_path / "cache"), **NO_MODULES)
    own = tmp_path / "Own Model.gguf"
    own.write_bytes(CONTENT)
    refused(product.run("model", "add", f"file:{tmp_path}/none.gguf"), "There is no file")
    assert product.run("model", "add", f"file:{own}").stdout == "own-model\n"
    row = listed(product)["own-model"]
    assert (row["kind"], row["licence"], row["size"]) == ("file", "mit", len(CONTENT))
    assert product.run("model", "remove", "own-model").status == 0
    assert own.read_bytes() == CONTENT
    assert "own-model" not in listed(product)


def test_a_provider_is_added_tried_and_answers_on_a_running_server(stage: Stage) -> None:
    def answered(request: Request) -> str:
        if "Count from one" in request.last:
            return "one, two, three, four, five, six, seven, eight, nine, ten"
        return "I am the provider's."

    endpoint = stage.endpoint(answered, reject=("tools",))
    product = stage.product(**NO_MODULES)
    secret = "sk-typed-once-4711"
    added = product.run("model", "add", "mistral", "--url", endpoint.url, stdin=secret)
    assert (added.status, added.stdout) == (0, "mistral\n"), added
    row = listed(product)["mistral"]
    assert (row["kind"], row["model"], row["url"]) == ("endpoint", "scripted", endpoint.url)
    refused(
        product.run("model", "add", "mistral", "--url", endpoint.url, "--model", "b", stdin="k"), "--name"
    )
    refused(product.run("model", "add", "openai"), "OpenAI needs a key")

    tried = product.run("model", "test", "mistral")
    assert tried.status == 0, tried
    assert tried.stdout.startswith("scripted answers, streams (in ")
    assert "takes no function calls" in tried.stdout
    about = json.loads(product.run("model", "test", "mistral", "--json").stdout)
    assert (about["answers"], about["streams"], about["tools"]) == (True, True, False)

    assert product.run("run", "Is anybody there?").status == 1
    [session] = json.loads(product.run("session", "list", "--json").stdout)
    with product.serving():
        used = product.run("model", "use", "mistral")
        assert (used.status, used.stdout) == (0, "mistral answers from the next message on.\n"), used
        said = product.run("say", "--session", session["id"], "--wait", "Who are you?")
        assert said.stdout == "I am the provider's.\n", said
    assert listed(product)["mistral"]["in_use"]
    refused(product.run("model", "remove", "mistral"), "the model that answers")
    found = [
        path
        for path in product.data.rglob("*")
        if path.is_file() and secret in path.read_text("utf-8", "replace")
    ]
    assert [path.name for path in found] == ["secrets.json"]

    refused(product.run("model", "use", "1.5b"), "IACT_EMBEDDED")
    product.settings["IACT_EMBEDDED"] = ""
    assert product.run("model", "use", "1.5b").status == 0
    assert product.run("model", "remove", "mistral").status == 0
    assert not any(secret in path.read_text("utf-8", "replace") for path in found)
