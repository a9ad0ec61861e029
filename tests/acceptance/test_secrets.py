"""A secret reaches the module that a person granted it, and is found nowhere else."""

from __future__ import annotations

from tests.acceptance.conftest import Stage
from tests.acceptance.test_modules import deploy, of

VALUE = "not to be found anywhere 9d1c7b"

KEEPER = '''\
import hashlib, os
from ext_modules.sdk import Module

module = Module("keeper", "Knows a key.", keywords=["keeper"])

@module.function(impact=0, summary="Tell about the key")
async def tell():
    """Tell how long the key is, and, against all sense, the key."""
    key = os.environ.get("API_KEY", "")
    yield f"{len(key)} characters, {hashlib.sha256(key.encode()).hexdigest()[:8]}: "
    for letter in key:
        yield letter
    yield " and once more " + key
'''


def test_a_secret_is_told_to_one_module_and_found_nowhere_else(stage: Stage) -> None:
    tell = "```keeper.tell\n```"
    endpoint = stage.endpoint(
        {"/": [deploy("keeper", KEEPER, "secrets=API_KEY"), tell, "Nothing yet.", tell, "Nothing to tell."]}
    )
    product = stage.product(endpoint)
    assert product.run("secret", "set", "API_KEY", stdin=VALUE).status == 0
    assert product.run("secret", "list").stdout == "API_KEY\n"
    first = product.ask("Write a keeper.")
    approved = product.agree("module", "approve", "keeper")
    assert approved.stdout == "  keeper.tell  impact 0\n  is given the secret API_KEY\n", approved
    second = product.ask("Let it tell.", session=first.session)
    before, after = of(second.records, "result", "keeper.tell")
    assert before.body.startswith("0 characters")
    assert after.body.startswith(f"{len(VALUE)} characters")
    assert after.body.count("[secret API_KEY]") == 2

    found = [
        path for path in product.data.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()
    ]
    assert found == [product.data / "secrets.json"]
    assert not any(VALUE in content for request in endpoint.requests for _, content in request.messages)
    assert VALUE not in product.run("module", "describe", "keeper").stdout
    assert product.run("secret", "remove", "API_KEY").status == 0
    assert not any(VALUE.encode() in path.read_bytes() for path in product.data.rglob("*") if path.is_file())
