"""From inside a module's container, through the whole product: nothing can be reached, and harm is limited to one call.

One session, one command per turn; each test checks the result of its own command. The sandbox's own tests
cover the details.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.core.records.record import Record
from tests.acceptance.laws import journal_law, prefix_law
from tests.acceptance.product import Answer, Product, containers_of
from tests.endpoint import Endpoint

_SECRET = "a secret on the host, 7c1f"

_COMMANDS = {
    "network": """\
ls /sys/class/net
python3 - <<'END'
import socket
for address in (("8.8.8.8", 53), ("172.17.0.1", PORT), ("127.0.0.1", PORT)):
    try:
        socket.create_connection(address, 2).close()
        print("REACHED", address)
    except OSError as error:
        print("refused", address, error.strerror)
try:
    print("REACHED", socket.gethostbyname("example.org"))
except OSError:
    print("no name")
END""",
    "host": "cat SECRET; ls -d DATA; ls /root /home /work; grep -rl 'a secret on the host' / --include='*.txt' 2>/dev/null; true",
    "engine": "ls -l /var/run/docker.sock /run/docker.sock /run/containerd; find / -xdev -name '*.sock' -type s 2>/dev/null; true",
    "core": """\
python3 - <<'END'
for name in ("core", "iact.core.session", "iact", "iact.sandbox"):
    try:
        __import__(name)
        print("IMPORTED", name)
    except ImportError:
        print("absent", name)
END
cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -cE -- '-m ([i]act|[t]ests)'; ls /proc | grep -c '^[0-9]*$'""",
    "rights": "id -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; touch /etc/x /usr/x; mount -t tmpfs x /mnt; true",
    "keys": "env | grep -ciE 'openai|api_key|IACT_(DATA|MODEL)|scripted-key'; cat /proc/1/environ | tr '\\0' '\\n' | grep -ci openai; true",
    "forks": "b() { b | b & }; b 2>/dev/null; sleep 1; echo the bomb was lit",
    "after forks": "echo alive after forks",
    "memory": "python3 -c 'x = []\nwhile True: x.append(bytearray(16 << 20))'; echo ended with $?",
    "after memory": "echo alive after memory",
    "endless": "while true; do :; done",
    "after endless": "echo alive after endless",
    "flood": "yes | head -c 30000000",
    "after flood": "echo alive after flood",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inside:
    """The session, and the result of each command by name."""

    answer: Answer
    results: dict[str, Record]
    host: Path


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Inside:
    folder = tmp_path_factory.mktemp("inside")
    data = folder / "data"
    secret = folder / "secret.txt"
    secret.write_text(_SECRET)

    script: list[str] = []
    with Endpoint({"/": script}) as first:  # only to know a port of this host on which something listens
        port = first.url.split(":")[2].split("/")[0]
        for name, command in _COMMANDS.items():
            made = command.replace("PORT", port).replace("SECRET", str(secret)).replace("DATA", str(data))
            limit = " timeout=2" if name == "endless" else ""
            script.append(f"```shell.run{limit}\n{made}\n```")
        with Endpoint({"/": [*script, "I looked around."]}) as endpoint:
            answer = Product.at(data, endpoint, OPENAI_API_KEY="scripted-key").ask("Look around.")
            endpoint.assert_used()
            prefix_law(endpoint.requests)
        assert first.connections == 0
    assert not containers_of(data)
    journal_law(answer.journal)
    results = [record for record in answer.records if record.kind == "result"]
    return Inside(answer, dict(zip(_COMMANDS, results, strict=True)), secret)


def _output(inside: Inside, name: str) -> str:
    record = inside.results[name]
    assert record.text("status") == "ok", record
    return record.body


def _exit_status(inside: Inside, name: str) -> int:
    data = inside.results[name].fields["data"]
    assert isinstance(data, dict)
    status = data["exit_status"]
    assert isinstance(status, int)
    return status


def test_there_is_no_network(inside: Inside) -> None:
    printed = _output(inside, "network")
    assert printed.startswith("lo\n")
    assert printed.count("refused (") == 3
    assert "REACHED" not in printed
    assert "no name" in printed


def test_there_is_no_file_of_the_host(inside: Inside) -> None:
    printed = _output(inside, "host")
    assert "7c1f" not in printed
    assert f"cat: {inside.host}: No such file or directory" in printed
    assert "secret.txt\n" not in printed.replace(str(inside.host), "")
    assert "/data\n" not in printed.replace("cannot access", "")


def test_there_is_no_engine(inside: Inside) -> None:
    lines = _output(inside, "engine").splitlines()
    assert all("No such file or directory" in line for line in lines), lines


def test_there_is_no_way_to_the_core(inside: Inside) -> None:
    *imports, commands, processes = _output(inside, "core").splitlines()
    assert imports == ["absent core", "absent iact.core.session", "absent iact", "absent iact.sandbox"]
    assert commands == "0"
    assert int(processes) < 20, "it sees its own processes only"


def test_it_has_no_rights(inside: Inside) -> None:
    printed = _output(inside, "rights")
    assert "CapEff:\t0000000000000000" in printed
    assert "NoNewPrivs:\t1" in printed
    assert "Seccomp:\t2" in printed
    assert "touch: cannot touch '/etc/x'" in printed
    assert "touch: cannot touch '/usr/x'" in printed
    assert "mount:" in printed


def test_it_is_told_no_key(inside: Inside) -> None:
    lines = _output(inside, "keys").splitlines()
    assert [line for line in lines if not line.startswith("cat: ")] == ["0", "0"]
    assert "cat: /proc/1/environ: Permission denied" in lines


def test_a_fork_bomb_costs_its_own_call_only(inside: Inside) -> None:
    assert "forks" in inside.results
    assert _output(inside, "after forks") == "alive after forks\n"


def test_a_memory_bomb_costs_its_own_call_only(inside: Inside) -> None:
    printed = inside.results["memory"].body
    assert "for lack of memory" in printed or "ended with 137" in printed, printed
    assert _output(inside, "after memory") == "alive after memory\n"


def test_an_endless_loop_ends_with_its_time(inside: Inside) -> None:
    assert _exit_status(inside, "endless") == 124
    assert "did not end within 2 s" in _output(inside, "endless")
    assert _output(inside, "after endless") == "alive after endless\n"


def test_a_flood_of_output_is_shortened(inside: Inside) -> None:
    blob = inside.results["flood"].fields["blob"]
    assert isinstance(blob, dict)
    assert isinstance(blob["size"], int)
    assert blob["size"] < 1_100_000
    assert inside.answer.reply == "I looked around."
