"""Installs by agents, through the running product: requested, allowed by a person, stored with the session, undone.

Package index, npm registry and git server belong to the test and use TLS; the setting `inside` maps their name to them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.test_cases import attended, listening, of, origins, session, verifies
from tests.acceptance.test_clearance import records
from tests.acceptance.test_scenes import shell
from tests.ext_modules.website import certificate
from tests.rounds import short
from tests.sandbox.calling import need_bubblewrap
from tests.sandbox.workshops import REGISTRY, equip, packages, registry

_THERE = "tinypack; cat repo/README; ls node_modules 2> /dev/null; command -v tinypack || echo none"


def _installs(proof: Path, *, npm: bool) -> list[str]:
    """Blocks that an agent writes one after the other."""
    trusted = f"cat > cert.pem <<'END'\n{(proof.parent / 'cert.pem').read_text(encoding='ascii')}END\n"
    trusted += f"""\
export PIP_INDEX_URL=https://{REGISTRY}/simple NPM_CONFIG_REGISTRY=https://{REGISTRY}/
export PIP_CERT=/workspace/cert.pem NODE_EXTRA_CA_CERTS=/workspace/cert.pem GIT_SSL_CAINFO=/workspace/cert.pem
"""
    node = "npm install --silent tiny-npm && node -p 'require(\"tiny-npm\")'\n" if npm else ""
    return [
        shell(f"{trusted}echo begun"),
        shell("pip install -q tinypack && tinypack"),
        shell(f"git clone -q https://{REGISTRY}/repo.git && cat repo/README\n{node}"),
        shell("git clone -q https://other.test/repo.git other"),
    ]


@pytest.mark.parametrize("backend", short(["bubblewrap"], of=["docker", "bubblewrap"]))
def test_what_agents_install_is_asked_for_kept_with_the_session_and_undone(
    stage: Stage, tmp_path: Path, backend: str
) -> None:
    if backend == "bubblewrap":
        need_bubblewrap()
    npm = backend == "docker"  # the smaller workshop, for bubblewrap, has no node
    proof = certificate(tmp_path, REGISTRY)
    script = [*_installs(proof, npm=npm), "Installed.", shell(_THERE), "There.", shell(_THERE), "Gone."]
    product = stage.product(stage.endpoint({"/": script}), IACT_SANDBOX=backend)
    equip(product.data, bubblewrap=backend == "bubblewrap")
    with listening(registry(packages(), proof)) as port:
        (product.data / "iact.toml").write_text(
            f'[inside]\n"{REGISTRY}:443" = "127.0.0.1:{port}"\n', encoding="utf-8"
        )
        with session(product) as (_, socket):
            answers = {REGISTRY: "session", "other.test": "no"}
            assert attended(socket, "Install what the project needs.", answers) == "Installed."
    found = records(product)
    begun, pip, cloned, refused = of(found, "shell.run")
    assert pip.body.splitlines()[-1:] == ["a wheel"], pip
    assert cloned.body.splitlines()[-1 - npm :] == ["a repository", *(["npm"] if npm else [])], cloned
    assert "502" in refused.body
    assert origins(found) == {("shell", REGISTRY, "session")}

    # Another process, another container, no server: what was installed is the session's.
    (journal,) = product.journals()
    later = product.ask("Is it there?", session=journal.parent.name)
    node = ["tiny-npm"] if npm else []
    there = of(later.records, "shell.run")[-1].body.splitlines()
    assert there == ["a wheel", "a repository", *node, "/workspace/.local/bin/tinypack"]

    # A person goes back to before; what came with the versions since is gone with them.
    before = product.run("workspace", "restore", "--session", later.session, str(begun.n))
    assert before.status == 0, before
    gone = of(product.ask("And now?", session=later.session).records, "shell.run")[-1]
    assert gone.body.splitlines()[-1:] == ["none"], gone
    assert not (later.workspace / "repo").exists()
    again = product.run("workspace", "restore", "--session", later.session, str(cloned.n))
    assert again.status == 0, again
    tool = later.workspace / ".local" / "bin" / "tinypack"
    assert (tool.is_file(), (later.workspace / "repo" / "README").read_text()) == (True, "a repository\n")
    verifies(product)
