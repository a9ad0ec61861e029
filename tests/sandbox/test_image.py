"""The base image: small, made once, and made of nothing but what it should be."""

from __future__ import annotations

import io
import tarfile
import time

import docker
import pytest

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker import image
from iact.sandbox.images import debian_root, payload


def test_it_is_small_and_found_again_at_once(engine: docker.DockerClient) -> None:
    made = image.ensure(engine, print)
    lines: list[str] = []
    begun = time.perf_counter()
    assert image.ensure(engine, lines.append) == made
    print(f"{made.reference}: {made.size / 1e6:.0f} MB, found in {time.perf_counter() - begun:.3f} s")
    assert lines == []
    assert made.size < 130e6


def test_its_tools_work_without_a_network(engine: docker.DockerClient) -> None:
    made = image.ensure(engine, print)
    script = "set -e; cd /tmp; git init -q r; which awk sed grep find tar gzip xz jq ps; python3 -c 'import ssl, sqlite3'; nproc"
    said = engine.containers.run(
        made.reference,
        ["bash", "-c", script],
        network_mode="none",
        remove=True,
        read_only=True,
        tmpfs={"/tmp": ""},
    )
    assert b"/usr/bin/jq" in said


def test_it_runs_tests(engine: docker.DockerClient) -> None:
    made = image.ensure(engine, print)
    script = "cd /tmp; printf 'def test_sum(tmp_path):\\n    assert 1 + 1 == 3\\n' > test_a.py; pytest -q; python3 -m pytest -q"
    said = engine.containers.run(
        made.reference,
        ["bash", "-c", f"{script}; true"],
        network_mode="none",
        remove=True,
        read_only=True,
        tmpfs={"/tmp": ""},
    )
    assert said.count(b"1 failed in") == 2
    assert b"assert (1 + 1) == 3" in said


def test_no_registry_is_a_clear_sentence(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the loopback's discard port nothing answers, on any machine."""
    monkeypatch.setattr(image, "REGISTRY_IMAGE", "127.0.0.1:9/nothing:1")
    with pytest.raises(
        SandboxUnavailable, match=r"No image registry provided .*iact image build --from debian"
    ):
        image.ensure(engine, print, source="registry")


def test_the_system_of_a_registry_gets_the_programs_that_agents_are_told_of(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image of this machine plays the registry's; what is added to it leaves a mark."""
    assert {"git", "jq"} <= {*image._COMPLETE.split()}
    assert "pytest" in image._COMPLETE
    monkeypatch.setattr(image, "_fetch", lambda: None)
    monkeypatch.setattr(image, "REGISTRY_IMAGE", image.ensure(engine, print).reference)

    monkeypatch.setattr(image, "_COMPLETE", "echo no mirror answers; exit 7")
    with pytest.raises(SandboxUnavailable, match=r"can't be added to .*no mirror answers.*--from debian"):
        image._pull(engine, print, required=True)
    assert not image._pull(engine, print, required=False)

    monkeypatch.setattr(image, "_COMPLETE", "echo added > /usr/bin/added")
    made = image._system_tag("registry")
    try:
        assert image._pull(engine, print, required=True)
        assert engine.containers.run(made, ["cat", "/usr/bin/added"], remove=True) == b"added\n"
    finally:
        engine.images.remove(made, force=True)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("usr/bin/bash", True),
        ("usr/bin/git", True),
        ("usr/bin/python3.11", True),
        ("usr/lib/python3.11/asyncio/__init__.py", True),
        ("usr/lib/python3.13/json/__init__.py", True),
        ("usr/lib/python3/dist-packages", True),
        ("usr/lib/python3/dist-packages/_pytest/main.py", True),
        ("usr/lib/python3/dist-packages/pluggy-1.0.0.egg-info/PKG-INFO", True),
        ("usr/lib/python3/dist-packages/pkg_resources/__init__.py", False),
        ("usr/lib/python3/dist-packages/pygments/lexer.py", False),
        ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("usr/lib/x86_64-linux-gnu/libstdc++.so.6", True),
        ("usr/share/git-core/templates/description", True),
        ("usr/lib/git-core/git-add", True),
        ("usr/share/terminfo/d/dumb", True),
        ("dev/null", False),
        ("usr/share/doc/bash/copyright", False),
        ("usr/share/locale/de/LC_MESSAGES/bash.mo", False),
        ("usr/bin/perl", False),
        ("usr/bin/dpkg", False),
        ("usr/lib/git-core/git-remote-http", False),
        ("usr/lib/x86_64-linux-gnu/gconv/UTF-32.so", False),
        ("usr/lib/python3.11/test/support/__init__.py", False),
        ("usr/lib/python3.11/__pycache__/os.cpython-311.pyc", False),
        ("etc/passwd", False),  # ours is put there instead
    ],
)
def test_what_the_system_keeps(name: str, kept: bool) -> None:
    assert debian_root.keeps(name) is kept


def test_the_payload_is_sdk_protocol_and_locked_wheels() -> None:
    names = payload.sdk_files()
    assert "ext_modules/sdk/__main__.py" in names
    assert "protos/iact/ext_module/v1/ext_module_pb2.py" in names
    assert not [name for name in names if name.startswith("ext_modules/shell")]
    requirements = list(payload._requirements())
    assert len(requirements) == len(payload.WHEELS)
    assert all("==" in line and "--hash=sha256:" in line for line in requirements)


def test_the_archive_belongs_to_root_and_is_readable() -> None:
    source = next(iter(payload.sdk_files().values()))
    with tarfile.open(fileobj=io.BytesIO(payload._tar({"opt/iact/sdk/a.py": source}))) as tar:
        members = {member.name: member for member in tar}
    assert list(members) == ["opt", "opt/iact", "opt/iact/sdk", "opt/iact/sdk/a.py"]
    assert all((member.uid, member.gid) == (0, 0) for member in members.values())
    assert members["opt/iact/sdk/a.py"].mode == 0o644
    assert members["opt/iact"].mode == 0o755


def test_digest_depends_on_names_contents_and_their_borders() -> None:
    digests = {
        payload.digest_of(files)
        for files in (
            [("a", b"bc")],
            [("ab", b"c")],
            [("a", b"b"), ("c", b"")],
            [("a", b"bd")],
            [],
        )
    }
    assert len(digests) == 5
