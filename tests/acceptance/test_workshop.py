"""The shell with the tools that a person chose: built by one command, described to agents, and installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iact.commands.images import build_image
from iact.sandbox import build
from iact.sandbox.images import workshop
from iact.settings import Settings
from tests.acceptance.conftest import Stage
from tests.acceptance.test_scenes import shell
from tests.rounds import short
from tests.sandbox.calling import need_bubblewrap
from tests.sandbox.workshops import DEV, FEW

_TRY = """\
printf '#include <stdio.h>\\nint main() { puts("compiled"); }\\n' > a.c && make -s a && ./a
sqlite3 :memory: "select 'asked', 6 * 7"
python3 -c 'import idna; print("wheel", idna.__version__)'
python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python -c 'print("environment")'
curl --version > curl && pip --version > pip && touch /usr/x 2> /dev/null || id -un
"""
_MORE = """\
node -e 'console.log("node", 6 * 7)'; npm --version > /dev/null && echo npm
printf 'int main() {}' > b.cpp && c++ b.cpp -o b && ./b && echo plus
printf 'def test(): pass\\n' > test_a.py && pytest -q -p no:cacheprovider test_a.py | tail -1 | head -c 8
"""


@pytest.mark.parametrize(
    ("backend", "chosen"), short([("docker", DEV)], of=[("docker", DEV), ("bubblewrap", FEW)])
)
def test_what_a_person_names_is_in_the_shell_and_agents_know_it(
    stage: Stage, backend: str, chosen: tuple[str, ...]
) -> None:
    if backend == "bubblewrap":
        need_bubblewrap()
    whole = backend == "docker"
    script = _TRY + (_MORE if whole else "")
    endpoint = stage.endpoint(
        {"/": [shell(script), "All there.", shell("command -v gcc || echo none"), "Gone."]}
    )
    product = stage.product(endpoint, IACT_SANDBOX=backend)
    built = product.run("image", "build", *chosen, seconds=600)
    assert built.status == 0, built
    again = product.run("image", "build", seconds=600)
    assert built.stdout.strip() in again.stdout.splitlines()
    assert again.stderr == ""  # all of it is there

    answer = product.ask("Compile something in the shell.")
    (result,) = [record for record in answer.records if record.kind == "result"]
    user = "nobody" if backend == "bubblewrap" else "root"
    expected = ["compiled", "asked|42", "wheel 3.10", "environment", user]
    assert result.body.split("\n") == expected + (["node 42", "npm", "plus", "1 passed"] if whole else [""])
    seen = "\n".join(content for _, content in endpoint.requests[0].messages)
    assert "Installed here, beside the usual commands, git and jq: " in seen
    assert "Python packages: idna 3.10" in seen

    described = json.loads(product.run("module", "describe", "shell", "--json").stdout)
    assert "Installed here, beside the usual commands, git and jq: " in described["manifest"]["purpose"]

    assert product.run("image", "build", "--plain").status == 0
    later = product.ask("And now?", session=answer.session)
    assert [record.body for record in later.records if record.kind == "result"][-1] == "none\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--with", "curl; rm"], "'curl;' is not the name of a Debian package; write names separated by spaces."),
        (["--with=--help"], "'--help' is not the name of a Debian package"),
        (["--wheels=-r /etc/passwd"], "'-r' is not the name of a Python package"),
        (["--wheels", "x @ file:///x"], "'@' is not the name of a Python package"),
        (["--plain", "--profile", "dev"], "--plain can't be used with --profile"),
        (["--from", "registry", "--profile", "dev"], "A shell with more packages is built from Debian packages. Leave out --from registry."),
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(stage: Stage, options: list[str], sentence: str) -> None:
    product = stage.product()
    ran = product.run("image", "build", *options)
    assert ran.status in (1, 2)
    assert sentence in ran.stderr
    assert not (product.data / "workshop.json").exists()


def test_what_is_added_keeps_what_was_there(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    built = list[workshop.Workshop]()

    def record(data: Path, wanted: workshop.Workshop, *_: object) -> build.Built:
        built.append(wanted)
        workshop.store(data, wanted)
        return build.Built("an image", "3.11")

    monkeypatch.setattr(build, "make_workshop", record)
    settings = Settings(data=stage.folder / "data")
    build_image(settings, None, profiles=["data"], packages="bc")
    build_image(settings, None, packages="ffmpeg", wheels="scipy", add=True)
    build_image(settings, None, packages="tree")
    data, more, replaced = built
    assert more.profiles == ("data",)
    assert more.packages == (*data.packages, "ffmpeg")
    assert more.asked == (*data.asked, "scipy")
    assert replaced == workshop.Workshop(packages=("tree",))


def test_a_package_that_does_not_exist_changes_nothing(stage: Stage) -> None:
    product = stage.product()
    (product.data / "workshop.json").write_text(
        json.dumps({"profiles": [], "packages": ["bc"], "asked": [], "wheels": []}), encoding="utf-8"
    )
    ran = product.run("image", "build", "--with", "no-such-package-anywhere")
    assert ran.status == 1
    assert "The workshop image could not be built (E: " in ran.stderr
    assert json.loads((product.data / "workshop.json").read_text(encoding="utf-8"))["packages"] == ["bc"]
