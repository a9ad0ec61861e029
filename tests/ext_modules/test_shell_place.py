"""What lasts from script to script: read strictly from what bash printed, and never run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ext_modules.sdk import strays, temporary
from ext_modules.shell.place import LARGEST, Place, arrived, exported, left
from tests.rounds import rounds

HERE = Place("/", {})
NAMES = st.from_regex(rb"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).map(lambda name: b"MY_" + name)
VALUES = st.binary(max_size=40).filter(lambda value: b"\0" not in value)


@settings(max_examples=rounds(15), deadline=None)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
@example({b"MY_A": b"\x1b[1m\t\x01\n'\"$`\\ \xff\xc3\xbc", b"MY_B": b"$(touch /nowhere)", b"MY_C": b""})
def test_variables_come_back_as_they_were_exported(variables: dict[bytes, bytes]) -> None:
    """Set by our script in a real bash, printed by it, and read again."""
    script = Place("/", variables).script() + b"\nexport -p"
    ran = subprocess.run(["bash", "-c", script], env={}, capture_output=True, check=True)
    assert ran.stderr == b""
    found = exported(ran.stdout)
    assert found is not None
    assert {name: value for name, value in found.items() if name.startswith(b"MY_")} == variables


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.sampled_from(["/", "/a b", "/\udcff"]))
def test_a_place_travels(variables: dict[bytes, bytes], cwd: str) -> None:
    place = Place(cwd, variables)
    assert arrived(place.carried()) == place


@given(st.binary(max_size=300))
@example(b"/\0A B=1\0=2\0C\0$(x)=3\0IACT_CALL=4\0BASH_ENV=5\0LONG" + b"G" * 300 + b"=6")
def test_whatever_arrives_sets_variables_and_does_nothing_else(data: bytes) -> None:
    place = arrived(data)
    if place is None:
        return
    script = place.script()
    for line, (name, value) in zip(script.split(b"\nexport "), place.exports.items(), strict=False):
        assert line.removeprefix(b"export ").startswith(name + b"='")
        assert not name.startswith(b"IACT_")
        assert name != b"BASH_ENV"
        assert b"\0" not in value
    quoted = script.replace(b"'\\''", b"")
    assert quoted.count(b"'") == 2 * len(place.exports)


@pytest.mark.parametrize(
    "printed",
    [
        b"touch /x\n",
        b'declare -x A="1"\ntouch /x\n',
        b'declare -x A="1"; touch /x\n',
        b"declare -x A=1\n",
        b'declare -x A="1\n',
        b"declare -x A=$(touch /x)\n",
        b'declare -x A="1"',
        b'declare -x A="' + b"a" * LARGEST + b'"\n',
        b"declare -x A=(" + b'"' * 100_001 + b"\n",
    ],
)
def test_what_bash_would_not_print_lasts_not_at_all(printed: bytes, tmp_path: Path) -> None:
    assert exported(printed) is None
    before = Place("/", {b"A": b"0"})
    assert left(os.fsencode(tmp_path) + b"\n" + printed, before) == Place(str(tmp_path), {b"A": b"0"})


def test_arrays_and_what_has_no_value_are_left_out() -> None:
    printed = b'declare -ax A=([0]="1)" [1]=$\'a\\\'b\')\ndeclare -x B\ndeclare -ix C="5"\n'
    assert exported(printed) == {b"C": b"5"}


@pytest.mark.parametrize("said", [b"", b"/nowhere/at/all\n", b"relative\n", b"/"])
def test_a_script_that_did_not_say_where_it_ended_changes_nothing(said: bytes) -> None:
    assert left(said, HERE) == HERE


def test_a_folder_is_emptied_whatever_is_in_it(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "kept").write_text("kept")
    script = """
    mkdir -p a/b/c; echo x > a/b/file; ln -s ../../../outside a/b/link; ln -s /nowhere dangling; mkfifo pipe
    touch -- -rf $'odd\\nname'; chmod 0 a/b/c a/b a
    for i in $(seq 300); do mkdir deeper-than-a-path-may-be && cd deeper-than-a-path-may-be || exit; done
    """
    subprocess.run(["bash", "-c", script], cwd=folder, check=True)
    temporary.empty(str(folder))
    assert os.listdir(folder) == []
    assert os.listdir(outside) == ["kept"]
    temporary.empty(str(tmp_path / "nowhere"))


STRAYS = """
import os, subprocess, sys, time
sys.path.insert(0, {root!r})
from ext_modules.sdk import strays
kept = subprocess.Popen(["sh", "-c", "sleep 50 & wait"])
lost = subprocess.Popen(["sh", "-c", "env -i setsid sleep 51 & trap '' TERM; sleep 52"])
while {count} > sum(open(f"/proc/{{one}}/cmdline").read().startswith("sleep") for one in os.listdir("/proc") if one.isdigit()):
    time.sleep(0.01)
assert strays.contained()
assert strays.end_strays({{kept.pid}})
lost.wait()
print(sorted(open(f"/proc/{{one}}/cmdline").read().split("\\0")[1] for one in os.listdir("/proc")
             if one.isdigit() and open(f"/proc/{{one}}/cmdline").read().startswith("sleep")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a name space of processes so")
def test_strays_are_ended_and_what_is_spared_stays() -> None:
    root = str(Path(__file__).resolve().parents[2])
    code = STRAYS.format(root=root, count=3)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "python3", "-c", code],
        env={"PATH": os.environ["PATH"], "IACT_RIGHT": "work"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "['50']\n", done.stderr


def test_outside_of_a_sandbox_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(strays.RIGHT, raising=False)
    with subprocess.Popen(["sleep", "50"]) as process:
        assert strays.end_strays()
        assert process.poll() is None
        process.kill()
