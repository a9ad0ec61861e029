"""`shell.run`, in process: what lasts, what streams, how it ends, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ext_modules.sdk import memory
from ext_modules.sdk.call import Event, Output
from ext_modules.sdk.process import MARK
from ext_modules.sdk.runner import Asked, Ended, Failed, run
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON, Value
from ext_modules.shell.module import module


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IACT_WORKSPACE", str(tmp_path))
    return tmp_path


@pytest.fixture
def shell(workspace: Path) -> Bench:
    return Bench(module, session=str(workspace))


def play(shell: Bench, *commands: str, **arguments: JSON) -> Done:
    """Run the commands as one agent; gives the last one's end."""

    async def run() -> Done:
        done = Done()
        for command in commands:
            done = await shell.call("run", {"command": command, **arguments})
        return done

    return asyncio.run(run())


def processes(mark: str) -> list[str]:
    """Command lines of running processes that carry `mark` as an argument."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(repr(words))
    return found


_SLEEPS = 600_000 + os.getpid()


@pytest.fixture
def nap() -> Iterator[str]:
    """Seconds to sleep, unlike any other test's: by this the test finds its processes. None may stay."""
    global _SLEEPS
    _SLEEPS += 1
    yield str(_SLEEPS)
    assert processes(str(_SLEEPS)) == []


def test_output_and_status(shell: Bench, workspace: Path) -> None:
    done = play(shell, "echo out; echo err >&2; echo $((6 * 7)); exit 3")
    assert done.output == "out\nerr\n42\n"
    assert done.data == {"exit_status": 3, "cwd": str(workspace), "timed_out": False, "left_out": 0}
    assert done.error is None


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ("true", 0, ""),
        ("nosuchprogram", 127, "nosuchprogram: command not found"),
        ("if then", 2, "syntax error"),
        ("exec /nowhere", 127, "No such file"),
        ("kill -TERM $$", 143, "ended by signal 15 (SIGTERM)"),
        ("set -eu; echo $UNSET_NAME", 1, "unbound variable"),
        ("cat", 0, ""),
        ("read -r x; echo \"$x$?\"", 0, "1"),
        ("printf '\\xff\\x00ok'", 0, "\ufffd\x00ok"),
        ("# nothing", 0, ""),
        ("", 0, ""),
    ],
)  # fmt: skip
def test_a_script_that_fails_is_a_result(shell: Bench, command: str, status: int, says: str) -> None:
    done = play(shell, command)
    assert done.error is None
    assert done.data["exit_status"] == status
    assert says in done.output


def test_directory_and_exports_last_and_other_variables_do_not(shell: Bench, workspace: Path) -> None:
    first = "mkdir -p 'a b'; cd 'a b'; export A=$'x\\ny \"z\"' B=1; unset B; C=3; umask 077"
    done = play(shell, first, 'pwd; printf \'%s|\' "$A" "${B-none}" "${C-none}"; cd - >/dev/null; pwd')
    assert done.output == f'{workspace}/a b\nx\ny "z"|none|none|{workspace}\n'


@pytest.mark.parametrize("last", ["exit 1", "set -e; false", "(exit 2); exit", "trap 'true' ERR; false"])
def test_they_last_however_the_script_ends(shell: Bench, workspace: Path, last: str) -> None:
    done = play(shell, f"mkdir d; cd d; export A=1; {last}", "pwd; echo $A")
    assert done.output == f"{workspace}/d\n1\n"


def test_a_script_that_is_cut_short_changes_nothing(shell: Bench, workspace: Path) -> None:
    done = play(shell, "export A=1", "mkdir d; cd d; export A=2; kill -9 $$", "pwd; echo $A")
    assert done.output == f"{workspace}\n1\n"


def test_a_directory_that_is_gone_is_reported(shell: Bench, workspace: Path) -> None:
    done = play(shell, "mkdir d; cd d", "rm -r ../d", "pwd")
    assert (
        done.output
        == f"[The working directory {workspace}/d is gone; this runs in {workspace}.]\n{workspace}\n"
    )


def test_agents_have_directories_of_their_own(shell: Bench, workspace: Path) -> None:
    async def play() -> list[str]:
        await shell.call("run", {"command": "mkdir d; cd d"}, agent="/a")
        return [(await shell.call("run", {"command": "pwd"}, agent=agent)).output for agent in ("/a", "/b")]

    assert asyncio.run(play()) == [f"{workspace}/d\n", f"{workspace}\n"]


def test_the_module_is_not_in_the_environment(shell: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/sdk")
    monkeypatch.setenv("GRPC_VERBOSITY", "x")
    output = play(shell, "env").output
    assert not re.search("PYTHONPATH|GRPC|BASH_ENV|IACT_(ENTER|LEAVE|WORKSPACE)", output)


def test_the_mark_is_that_of_the_call_and_not_of_an_earlier_one(shell: Bench) -> None:
    first, second = play(shell, f"echo ${MARK}"), play(shell, f"echo ${MARK}")
    assert len(second.output) == 33
    assert first.output != second.output


def test_python(shell: Bench, workspace: Path) -> None:
    done = play(shell, "import os\nprint(os.getcwd(), 6 * 7)\nraise SystemExit(4)", language="python")
    assert (done.output, done.data["exit_status"]) == (f"{workspace} 42\n", 4)


@pytest.mark.parametrize(("language", "code"), [("bash", "echo end"), ("python", "print('end')")])
def test_a_script_may_be_long(shell: Bench, language: str, code: str) -> None:
    done = play(shell, f"# {'x' * 300_000}\n{code}", language=language)
    assert (done.output, done.data["exit_status"]) == ("end\n", 0)


def test_a_script_with_nul_is_refused(shell: Bench) -> None:
    error = play(shell, "echo\0").error
    assert error is not None
    assert "NUL" in error.message


def test_output_streams_as_it_appears(shell: Bench, workspace: Path) -> None:
    """The script waits for a file that is only made once its first line has arrived."""

    async def emit(event: Event | Ended | Failed) -> None:
        if isinstance(event, Output) and "first" in event.text:
            (workspace / "go").touch()

    command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second"
    asked = Asked("1", str(workspace), "/", "run", {"command": command, "timeout": 20})
    begun = time.monotonic()
    asyncio.run(run(module, asked, emit))
    assert time.monotonic() - begun < 15


def test_long_output_is_cut_in_the_middle(shell: Bench) -> None:
    done = play(shell, "seq 1 1000000")
    assert done.output.startswith("1\n2\n3\n")
    assert done.output.endswith("999999\n1000000\n")
    assert len(done.output.encode()) < 1 << 20
    assert done.data["left_out"] == 6_888_896 - 1_000_000
    assert "[5,888,896 bytes of output were left out here.]" in done.output
    assert sum(len(piece) for piece in done.streamed) <= 1_000_000


def test_binary_output_breaks_nothing(shell: Bench) -> None:
    done = play(shell, "head -c 2000000 /dev/urandom; echo; echo end")
    assert done.error is None
    assert done.output.endswith("\nend\n")


KILLED = "was killed with all its processes.]"
ESCAPES = {
    "plain": "sleep {nap}",
    "background": "sleep {nap} & wait",
    "setsid": "setsid sleep {nap} & sleep {nap}",
    "nohup": "nohup sleep {nap} >/dev/null 2>&1 & sleep {nap}",
    "no_environment": "env -i setsid sleep {nap} & sleep {nap}",
    "double_fork": "(setsid sh -c '(env -i setsid sleep {nap} &) & sleep {nap}' &) ; sleep {nap}",
    "deaf": "trap '' TERM INT HUP; sleep {nap}; sleep {nap}",
    "closed_output": "exec >/dev/null 2>&1; sleep {nap}",
    "stopped": "sleep {nap} & kill -STOP $!; wait",
}


@pytest.mark.parametrize("way", ESCAPES)
def test_a_timeout_kills_everything(shell: Bench, nap: str, way: str) -> None:
    begun = time.monotonic()
    done = play(shell, f"echo begun; {ESCAPES[way].format(nap=nap)}", timeout=0.5)
    assert time.monotonic() - begun < 3
    assert done.output.startswith("begun\n[The script did not end within 0.5 s") or way == "closed_output"
    assert done.output.endswith(KILLED + "\n")
    assert done.data["timed_out"] is True
    assert done.data["exit_status"] == 124
    assert processes(nap) == []


@pytest.mark.parametrize(
    "command",
    [
        "sleep {nap} & echo done",
        "setsid sleep {nap} & echo done",
        "(env -i setsid sleep {nap} >/dev/null 2>&1 &); echo done",
    ],
)
def test_what_is_left_in_the_background_ends_with_the_script(shell: Bench, nap: str, command: str) -> None:
    done = play(shell, command.format(nap=nap), timeout=20)
    assert (done.output, done.data["exit_status"], done.data["timed_out"]) == ("done\n", 0, False)
    assert processes(nap) == []


def test_a_script_that_kills_its_supervisor_ends_too(shell: Bench, nap: str) -> None:
    begun = time.monotonic()
    done = play(shell, f"setsid sleep {nap} & kill -9 $PPID; sleep {nap}", timeout=20)
    assert time.monotonic() - begun < 10
    assert done.data["exit_status"] == 137
    assert processes(nap) == []


def test_nor_does_what_got_away_from_it_keep_the_call(shell: Bench, workspace: Path, nap: str) -> None:
    """It has the output open and bears no mark; whose module this is ends it with the instance."""
    script = f"echo begun; (echo $BASHPID > away; exec env -i setsid sleep {nap}) & sleep 0.2; kill -9 $PPID; sleep {nap}"
    done = play(shell, script, timeout=20)
    os.kill(int((workspace / "away").read_text()), signal.SIGKILL)
    asyncio.run(_until(lambda: processes(nap) == []))  # a kill is not done when it was asked for
    assert done.output.startswith("begun\n")
    assert (done.data["exit_status"], done.data["timed_out"]) == (137, False)


def test_processes_that_multiply_are_all_gone(shell: Bench, nap: str) -> None:
    """A bomb with a limit: every process starts two more, in new sessions, until 60 have been started."""
    bomb = f"b() {{ [ $1 -gt 5 ] && exec sleep {nap}; (b $(($1 + 1))) & (setsid true; b $(($1 + 1))); }}; b 0"
    done = play(shell, bomb, timeout=1)
    assert done.data["timed_out"] is True
    assert processes(nap) == []


@pytest.mark.parametrize("gone", ["sleep {nap}", "setsid sleep {nap} & trap '' TERM; sleep {nap}"])
def test_cancelling_kills_everything_within_two_seconds(workspace: Path, nap: str, gone: str) -> None:
    async def play() -> float:
        begun = asyncio.Event()

        async def emit(event: Event | Ended | Failed) -> None:
            begun.set()

        asked = Asked("1", str(workspace), "/", "run", {"command": f"echo; {gone.format(nap=nap)}"})
        task = asyncio.ensure_future(run(module, asked, emit))
        await begun.wait()
        await _until(lambda: processes(nap) != [])
        task.cancel()
        at = time.monotonic()
        await asyncio.wait([task], timeout=10)
        assert task.cancelled()
        return time.monotonic() - at

    assert asyncio.run(play()) < 2


async def _until(true: Callable[[], bool]) -> None:
    """Wait for a fact of the system, ten seconds at most."""
    async with asyncio.timeout(300):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_the_calls_deadline_ends_a_script_early_enough_to_tell(shell: Bench, nap: str) -> None:
    async def play() -> Done:
        return await shell.call("run", {"command": f"echo begun; sleep {nap}"}, timeout=1.5)

    done = asyncio.run(play())
    assert done.output.startswith("begun\n[The script did not end within")


def test_the_kernel_takes_the_script_first(shell: Bench) -> None:
    assert play(shell, "cat /proc/self/oom_score_adj").output == "1000\n"


def test_no_descriptor_stays_open(shell: Bench) -> None:
    play(shell, "true")
    before = len(os.listdir("/proc/self/fd"))
    play(shell, "true", "exit 1", "kill -9 $PPID")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_kill_for_lack_of_memory_is_said(shell: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 4])
    monkeypatch.setattr(memory, "kills", lambda: next(counts))
    monkeypatch.setattr(memory, "limit", lambda: 512 << 20)
    done = play(shell, "kill -9 $$")
    assert done.output == "[The kernel killed a process for lack of memory (the limit is 512 MiB).]\n"
    assert done.data["exit_status"] == 137


@pytest.mark.parametrize(
    ("content", "kills"),
    [
        ("low 0\noom 2\noom_kill 7\n", 7),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1),
        ("", None),
        ("oom_kill x\n", None),
    ],
)
def test_the_kernels_count_is_read_from_either_kind_of_control_group(
    tmp_path: Path, content: str, kills: int | None
) -> None:
    (tmp_path / "events").write_text(content)
    assert memory.kills((tmp_path / "missing", tmp_path / "events")) == kills


@pytest.mark.parametrize(
    ("content", "limit"), [("536870912\n", 1 << 29), ("max\n", None), ("9223372036854771712\n", None)]
)
def test_the_memory_limit(tmp_path: Path, content: str, limit: int | None) -> None:
    (tmp_path / "max").write_text(content)
    assert memory.limit((tmp_path / "missing", tmp_path / "max")) == limit


# --- input --------------------------------------------------------------------------------------------


def given_input(shell: Bench, command: str, content: Value, **arguments: JSON) -> Done:
    """Run a command whose input is `content`."""
    return asyncio.run(shell.call("run", {"command": command, **arguments}, values={"stdin": content}))


@pytest.mark.parametrize("size", [1, 70_000, 3_000_000])
def test_a_variable_is_the_input_byte_for_byte(shell: Bench, size: int) -> None:
    content = os.urandom(size)
    done = given_input(shell, "sha256sum", Value(content))
    assert done.output == f"{hashlib.sha256(content).hexdigest()}  -\n"


def test_the_input_goes_to_the_script_and_to_a_python_program_alike(shell: Bench) -> None:
    orders = Value(b"a,1\nb,2\n", "text/csv")
    assert given_input(shell, "read line; echo first: $line; cat", orders).output == "first: a,1\nb,2\n"
    program = "import sys\nprint(len(sys.stdin.readlines()))"
    assert given_input(shell, program, orders, language="python").output == "2\n"
    long = "x = 1\n" * 20_000 + program
    assert given_input(shell, long, orders, language="python").output == "2\n"


def test_without_a_variable_there_is_no_input(shell: Bench) -> None:
    given_input(shell, "cat", Value(b"of before\n"))
    assert play(shell, "cat; echo end").output == "end\n"
    assert play(shell, "cat; echo end", stdin="a text\n").output == "a text\nend\n"
