"""`python.run`: a piece of Python in an interpreter with a memory; its plots are returned as pictures.

A state machine: `fresh` as long as nothing was run, and `running`, in which the variables can be listed and the
interpreter can be ended. Its content is in memory only: versions of the workspace, forks and undo do not include it. If
the interpreter is gone, the next call reports that.
"""

from __future__ import annotations

import codecs
import json
import keyword
from collections.abc import Mapping
from typing import Final

from ext_modules.sdk import Call, Module, Result, memory
from ext_modules.sdk.call import AgentState
from ext_modules.sdk.kept import Kept
from ext_modules.sdk.values import JSON, Value

from .interpreter import Answer, Gone, Interpreter, is_text
from .kernel import MOST_NAMES

FRESH: Final = "fresh"
RUNNING: Final = "running"

module = Module(
    "python",
    "A Python interpreter that keeps its variables from call to call, with numpy, pandas and matplotlib.",
    keywords=[
        "python", "interpreter", "notebook", "repl", "code", "run", "compute", "calculate", "analysis",
        "analyse", "analyze", "data", "numpy", "pandas", "dataframe", "matplotlib", "plot", "plots", "chart", "charts",
        "graph", "figure", "histogram", "picture", "statistics", "mean", "csv", "table", "clean", "regression",
    ],
    states={
        FRESH: "Nothing was run yet.",
        RUNNING: "An interpreter holds what you defined.",
    },
)  # fmt: skip

_LAST_WORDS: Final = 1.5
"""Seconds before the call's deadline at which code is ended, so that its output still arrives."""
_TIMED_OUT: Final = 124
_KILLED: Final = 137
_NO_NAMES: Final[Mapping[str, Value]] = {}
_THERE: Final = b"there"
"""Carried from call to call: there is an interpreter with content."""


@module.function(impact=1, summary="Python that keeps its variables, with numpy, pandas, matplotlib; figures are shown.", body="code",
                 idempotent=False, exclusive=True, timeout=130)  # fmt: skip
async def run(
    call: Call,
    code: str,
    timeout: float = 120,  # noqa: ASYNC109
    names: Mapping[str, Value] = _NO_NAMES,
) -> Result:
    """Runs the body in your own Python interpreter, in /workspace, and gives what it prints, the value of its last line,
    and each open figure as a picture ($figure_1, …; don't call plt.show()). Variables, imports and functions stay for
    your next run. numpy, pandas and matplotlib are there; no network, no input(), no pip.
    `names={"table": $orders}` defines `table` as your variable $orders before the code runs: text is a str, everything
    else bytes (`io.BytesIO(picture)`). After `timeout` seconds it is interrupted; what was defined stays. Between runs all
    that it started stands still: for a server or a job use shell.run.

    ```python.run names={"table": $orders}
    import io
    import pandas as pd
    orders = pd.read_csv(io.StringIO(table))
    orders.describe()
    ```
    """
    if "\0" in code:
        raise ValueError("The code holds a NUL character; write it without.")
    wrong = next((name for name in names if not name.isidentifier() or keyword.iskeyword(name)), None)
    if wrong is not None:
        raise ValueError(f"`names`: {wrong!r} can't be the name of a variable in Python.")
    is_new = not isinstance(call.state.get("interpreter"), Interpreter)
    interpreter = await _interpreter(call)
    limit = max(0.1, min(timeout, call.remaining() - _LAST_WORDS))
    killed_before = memory.kills()
    kept, decoder = Kept(), codecs.getincrementaldecoder("utf-8")("replace")
    answer: Answer | None = None
    try:
        async with call.limit(limit):
            async for item in interpreter.run(code, names):
                if isinstance(item, Answer):
                    answer = item
                    continue
                call.output(kept.feed(decoder.decode(item)))
                await call.drain()
    except TimeoutError:
        return await _cut(
            call, kept, interpreter, f"The code did not end within {limit:g} s and was interrupted."
        )
    except Gone as gone:
        await _drop(call)
        why = str(gone)
        if memory.kills() != killed_before:
            why = "The kernel ended the interpreter for lack of memory."
        return _result(call, kept, [f"{why} {_LOST}"], _KILLED)
    except BaseException:
        # Cancelled: earlier definitions stay if the code stops when interrupted.
        if await interpreter.interrupt() is None:
            await _drop(call)
        raise
    assert answer is not None
    call.output(kept.feed(decoder.decode(b"", final=True)))
    for number, picture in enumerate(answer.pictures, 1):
        call.artifact(Value(picture, "image/png", f"figure-{number}.png"))
    remarks = [*answer.remarks, *([_NEW] if is_new and answer.raised == "NameError" else [])]
    if "json" not in code:
        remarks += [_IS_JSON.format(name=name) for name, value in names.items() if _is_json(value)]
    return _result(call, kept, remarks, answer.status, raised=answer.raised)


_NEW: Final = (
    'This interpreter is new, so nothing is defined in it yet; names={"x": $x} defines x as your variable $x.'
)
_IS_JSON: Final = "`{name}` is a str that holds JSON; json.loads({name}) gives what is in it."
_LONGEST_JSON: Final = 8_000_000
"""The most bytes of a text that is looked at for whether it is JSON."""

_LOST: Final = "What was defined is gone; the next run begins anew."


@module.function(impact=0, name="variables", summary="What your runs defined: names, types, beginnings of values.", states=[RUNNING],
                 held=True, exclusive=True)  # fmt: skip
async def variables(call: Call) -> str:
    interpreter = call.state.get("interpreter")
    if not isinstance(interpreter, Interpreter):
        return f"[{_LOST}]\n"
    try:
        found = await interpreter.names()
    except Gone as gone:
        await _drop(call)
        return f"[{gone} {_LOST}]\n"
    listed = "".join(f"{name}: {kind} = {shown}\n" for name, kind, shown in found)
    more = f"[There may be more than these {MOST_NAMES}.]\n" if len(found) >= MOST_NAMES else ""
    return f"{listed}{more}" or "[Nothing is defined.]\n"


@module.function(impact=1, summary="End your interpreter, and begin anew with the next run.", states=[RUNNING],
                 idempotent=True, exclusive=True)  # fmt: skip
async def restart(call: Call) -> str:
    await _drop(call)
    call.carry(b"")
    return "The interpreter was ended; the next run begins anew.\n"


@module.ends_background
async def end_background(agent: AgentState) -> None:
    """Nothing to end: between calls all processes of an interpreter are stopped."""


async def _interpreter(call: Call) -> Interpreter:
    """The agent's interpreter, or a new one. A new one that replaces a lost one is announced in the output."""
    running = call.state.get("interpreter")
    if isinstance(running, Interpreter):
        return running

    if call.carried == _THERE:
        call.output("[The interpreter of before is gone, with all that was defined; this is a new one.]\n")
    interpreter = await Interpreter.start()
    call.state["interpreter"] = interpreter
    call.move(RUNNING)
    call.carry(_THERE)
    return interpreter


async def _drop(call: Call) -> None:
    """End the interpreter, if there is one."""
    interpreter = call.state.pop("interpreter", None)
    if isinstance(interpreter, Interpreter):
        await interpreter.end()
    if call.agent_state.name != FRESH:
        call.move(FRESH)
    call.carry(b"")


async def _cut(call: Call, kept: Kept, interpreter: Interpreter, why: str) -> Result:
    """End code that ran too long, and return its result."""
    printed = await interpreter.interrupt()
    if printed is not None:
        call.output(kept.feed(printed.decode("utf-8", "replace")))
        return _result(call, kept, [f"{why} What was defined before is still there."], _TIMED_OUT)
    await _drop(call)
    return _result(call, kept, [f"{why} It did not give in. {_LOST}"], _TIMED_OUT)


def _is_json(value: Value) -> bool:
    """Whether a text is a JSON list or object, which its author may take for the list or object itself."""
    if len(value.data) > _LONGEST_JSON or value.data.lstrip()[:1] not in (b"[", b"{") or not is_text(value):
        return False
    try:
        json.loads(value.data)
    except (ValueError, RecursionError):
        return False
    return True


def _result(
    call: Call, kept: Kept, remarks: tuple[str, ...] | list[str], status: int, *, raised: str = ""
) -> Result:
    """What a run printed, with remarks on lines of their own."""
    data: dict[str, JSON] = {"exit_status": status, "left_out": kept.left_out}
    if raised:
        data["raised"] = raised

    last = "".join(f"[{remark}]\n" for remark in remarks)
    if last and not kept.at_line_start:
        last = f"\n{last}"
    if kept.complete:
        call.output(last)
        return Result(data=data)
    return Result(kept.text() + last, data=data)
