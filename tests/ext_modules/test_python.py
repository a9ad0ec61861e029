"""`python.run`, in process: what stays from run to run, how code ends, and that it can always be ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ext_modules.python.interpreter import Interpreter
from ext_modules.python.module import module
from ext_modules.sdk.process import Process
from ext_modules.sdk.runner import Asked, run
from ext_modules.sdk.supervisor import descendants
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON, Value


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IACT_WORKSPACE", str(tmp_path))
    return tmp_path


def play(workspace: Path, scene: Callable[[Bench], Awaitable[None]]) -> None:
    """Play a scene with a bench of its own; its interpreter is ended."""

    async def scenario() -> None:
        bench = Bench(module, session=str(workspace))
        try:
            await scene(bench)
        finally:
            held = module.agent(str(workspace), "/").data.pop("interpreter", None)
            if isinstance(held, Interpreter):
                await held.end()
        assert not Process.running

    asyncio.run(scenario())


async def code(bench: Bench, text: str, *, timeout: float = 60) -> Done:  # noqa: ASYNC109
    return await bench.call("run", {"code": text, "timeout": timeout})


def test_what_is_defined_stays_and_the_last_value_is_shown(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        assert (await code(bench, "a = 6\ndef twice(x): return 2 * x")).output == ""
        done = await code(bench, "print('so')\ntwice(a) + 30")
        assert (done.output, done.data["exit_status"]) == ("so\n42\n", 0)
        assert "a: int = 6\n" in (await bench.call("variables")).output
        await bench.call("restart")
        assert "NameError" in (await code(bench, "a")).output
        assert "NotOffered" not in str((await bench.call("variables")).error)

    play(workspace, scene)


def test_what_is_raised_is_a_result_with_the_agents_own_lines(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        done = await code(bench, "x = 1\nraise ValueError(f'no {x}')")
        assert done.error is None
        assert (done.data["exit_status"], done.data["raised"]) == (1, "ValueError")
        assert "line 2, in <module>\n    raise ValueError(f'no {x}')" in done.output
        assert "kernel.py" not in done.output
        assert (await code(bench, "x")).output == "1\n"
        assert "SyntaxError" in (await code(bench, "def")).output
        assert (await code(bench, "raise SystemExit(3)")).data["exit_status"] == 3

    play(workspace, scene)


def test_code_that_never_ends_is_interrupted_and_its_variables_stay(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        done = await code(bench, "kept = 1\nwhile True: pass", timeout=0.5)
        assert done.data["exit_status"] == 124
        assert "line 2, in <module>" in done.output
        assert "kernel.py" not in done.output
        assert "still there" in done.output
        assert (await code(bench, "kept")).output == "1\n"

    play(workspace, scene)


STUBBORN = "import time\nwhile True:\n    try: time.sleep(600)\n    except BaseException: pass"


def test_code_that_does_not_give_in_is_ended_with_its_interpreter(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        done = await code(bench, "gone = 1\n" + STUBBORN, timeout=0.5)
        assert "did not give in" in done.output
        done = await code(bench, "gone")
        assert "NameError" in done.output

    play(workspace, scene)


@pytest.mark.parametrize(
    "text", ["import time; time.sleep(600)", STUBBORN, "import os; os.system('sleep 600')"]
)
def test_a_call_that_is_stopped_ends_within_a_second(workspace: Path, text: str) -> None:
    async def scene(bench: Bench) -> None:
        await code(bench, "held = 5")
        begun = asyncio.Event()

        async def emit(event: object) -> None:
            begun.set()

        asked = Asked("x", str(workspace), "/", "run", {"code": f"print('on', flush=True)\n{text}"})
        task = asyncio.create_task(run(module, asked, emit))
        await begun.wait()
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - before < 5  # a second on a machine with nothing else to do
        if text != STUBBORN:
            assert (await code(bench, "held")).output == "5\n"

    play(workspace, scene)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def test_nothing_runs_between_two_calls(workspace: Path) -> None:
    writer = """
import threading, time, subprocess
def write():
    while True:
        with open("ticks", "a") as file:
            file.write(".")
        time.sleep(0.005)
threading.Thread(target=write, daemon=True).start()
subprocess.Popen(["sh", "-c", "while :; do echo >> lines; sleep 0.005; done"], start_new_session=True)
time.sleep(0.2)
"""

    async def scene(bench: Bench) -> None:
        await code(bench, writer)
        held = module.agent(str(workspace), "/").data["interpreter"]
        assert isinstance(held, Interpreter)
        there = descendants(held.pid)
        assert len(there) >= 2
        assert {state_of(pid) for pid in there} == {"T"}
        before = (workspace / "ticks").stat().st_size
        await code(bench, "time.sleep(0.2)")
        assert (workspace / "ticks").stat().st_size > before

    play(workspace, scene)


BREAKING = {
    "kills itself": "import os; os.kill(os.getpid(), 9)",
    "closes everything": "import os; os.closerange(0, 200)",
    "answers itself": "import os\nfor fd in range(3, 4096):\n    try: os.write(fd, b'[]\\n' * 9)\n    except OSError: pass",
    "announces too much": "import os\nfor fd in range(3, 4096):\n    try: os.write(fd, b'{\"sizes\": [99999999999]}\\n')\n    except OSError: pass",
    "a line without end": "import os\nfor fd in range(3, 4096):\n    try: os.write(fd, b'x' * 3_000_000)\n    except OSError: pass",
    "leaves by the back door": "import os; os._exit(7)",
    "deep recursion in C": "import sys; sys.setrecursionlimit(10**9)\nf = lambda: f()\nf()",
}


@pytest.mark.parametrize("text", BREAKING.values(), ids=BREAKING)
def test_code_that_breaks_its_interpreter_costs_itself_only(workspace: Path, text: str) -> None:
    async def scene(bench: Bench) -> None:
        done = await code(bench, text, timeout=5)
        assert done.ends == 1
        assert done.error is None
        assert done.data["exit_status"] != 0
        await code(bench, "1")
        assert (await code(bench, "1 + 1")).output.endswith("2\n")

    play(workspace, scene)


def test_a_flood_is_cut_and_a_forked_child_does_not_answer(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        done = await code(bench, "print('x' * 5_000_000)")
        assert len(done.output) < 3_000_000
        assert done.data["left_out"]
        assert (await code(bench, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)")).data[
            "exit_status"
        ] == 0
        assert (await code(bench, "print('one')")).output == "one\n"

    play(workspace, scene)


def test_an_interpreter_that_is_gone_is_told_of(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        await code(bench, "a = 1")
        held = module.agent(str(workspace), "/").data.pop("interpreter")
        assert isinstance(held, Interpreter)
        await held.end()
        assert (await code(bench, "2")).output.startswith("[The interpreter of before is gone")

    play(workspace, scene)


# --- variables of the agent ---------------------------------------------------------------------------


async def named(bench: Bench, text: str, **values: Value) -> Done:
    """Run code with names for contents."""
    names: dict[str, JSON] = dict.fromkeys(values)
    inside = {f"/names/{name}": value for name, value in values.items()}
    return await bench.call("run", {"code": text, "names": names}, values=inside)


def test_a_variable_arrives_under_its_name_as_text_or_bytes(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        orders = Value("a,ä\n".encode() * 100_000, "text/csv")
        picture = Value(b"\x89PNG" + bytes(range(256)), "image/png")
        done = await named(bench, "type(df), len(df), type(png), png[:4], len(png)", df=orders, png=picture)
        assert done.output == "(<class 'str'>, 400000, <class 'bytes'>, b'\\x89PNG', 260)\n"
        assert (await code(bench, "df[:3]")).output == "'a,ä'\n", "it stays, as what the code itself defines"
        done = await named(bench, "df", df=Value(b"\xff", "text/plain"))
        assert done.output == "b'\\xff'\n", "what is no text is not changed to look like one"

    play(workspace, scene)


def test_a_text_that_is_json_is_said_to_be_a_str_unless_the_code_reads_it(workspace: Path) -> None:
    said = "[`records` is a str that holds JSON; json.loads(records) gives what is in it.]"

    async def scene(bench: Bench) -> None:
        records = Value(b'[{"a": 1}]', "application/json")
        assert said in (await named(bench, "[one['a'] for one in records]", records=records)).output
        assert said in (await named(bench, "len(records)", records=records)).output
        assert (
            await named(bench, "import json; json.loads(records)", records=records)
        ).output == "[{'a': 1}]\n"
        assert (
            "is a str" not in (await named(bench, "len(table)", table=Value(b"a,b\n[1]", "text/csv"))).output
        )

    play(workspace, scene)


def test_a_name_that_python_can_not_have_is_refused(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        for name in ("two words", "class", ""):
            done = await named(bench, "1", **{name: Value(b"x", "text/plain")})
            assert done.error is not None
            assert "can't be the name of a variable" in done.error.message

    play(workspace, scene)


def test_a_name_that_an_interpreter_does_not_know_because_it_is_new_is_explained(workspace: Path) -> None:
    async def scene(bench: Bench) -> None:
        assert "[This interpreter is new" in (await code(bench, "lost_1")).output
        again = (await code(bench, "lost_1")).output
        assert "NameError" in again
        assert "is new" not in again

    play(workspace, scene)
