"""The program as a solver of Inspect: `inspect eval` itself runs tasks, and Inspect's own reader reads its log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from iact.commands.inspect_log import write
from iact.core.records.calls import ClearanceAnswer
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.settings import load
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Endpoint
from tests.scripted import Reply, Request

ASKS: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["files.write"]\n'
INSPECT: Final = str(Path(sys.executable).with_name("inspect"))

TASKS: Final = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.model import ModelCost, ModelInfo, set_model_info
from inspect_ai.scorer import includes
from inspect_ai.solver import use_tools
from inspect_ai.tool import tool


@tool
def lamp():
    async def execute() -> str:
        '''Turn the lamp on.'''
        return "on"

    return execute


def made(*samples, **options):
    return Task(dataset=list(samples), scorer=includes(), **options)


@task
def plain():
    talk = [
        ChatMessageSystem(content="Be brief."),
        ChatMessageUser(content="I have 6 boxes."),
        ChatMessageAssistant(content="Noted."),
        ChatMessageUser(content="TALK: 7 in each. How many?"),
    ]
    return made(
        Sample(id="count", input="COUNT the files with the shell.", target="hello-42"),
        Sample(id="delete", input="DELETE everything.", target="not allowed"),
        Sample(id="talk", input=talk, target="42"),
        setup=use_tools(lamp()),
    )


@task
def tokens():
    return made(Sample(id="tokens", input="LOOP on.", target="x"), token_limit=5000)


@task
def messages():
    return made(Sample(id="messages", input="LOOP on.", target="x"), message_limit=6)


@task
def seconds():
    return made(Sample(id="seconds", input="HANG on.", target="x"), time_limit=3)


@task
def turns():
    return made(Sample(id="turns", input="LOOP on.", target="none of it"), turn_limit=3)


@task
def working():
    return made(Sample(id="working", input="HANG on.", target="none of it"), working_limit=3)


@task
def cost():
    # Inspect wants a price of the model that it is given; of none, it counts nothing.
    free = ModelCost(input=0, output=0, input_cache_write=0, input_cache_read=0)
    set_model_info("none/none", ModelInfo(cost=free))
    return made(Sample(id="cost", input="LOOP on.", target="none of it"), cost_limit=1.0)


@task
def embedded():
    return made(Sample(id="lines", input="Count the lines of /etc/os-release", target="9"))
"""


def played(request: Request) -> Reply | str:
    """A model that does what the first word in capitals says."""
    said = "\n".join(text for role, text in request.messages if role == "user")
    word = next(
        one for one in ("COUNT", "DELETE", "TALK", "LOOP", "HANG") if f"{one} " in said or f"{one}:" in said
    )
    match word:
        case "COUNT":
            return (
                "It printed hello-42." if "hello-42" in request.last else "```BASH\necho hello-$((40+2))\n```"
            )
        case "DELETE":
            return "That is not allowed." if request.turn else "```files.write path=all\nnothing\n```"
        case "TALK":
            return "There are 42." if "You answered" in said and "Be brief." in said else "What boxes?"
        case "LOOP":
            return f"```BASH\necho {request.turn}\n```"
        case _:
            return Reply(hang=True)


def evaluate(product: Product, *arguments: str, folder: Path, **variables: str) -> dict[str, EvalSample]:
    """The samples by their ids; the command must succeed."""
    logs = folder / "logs"
    command = [
        INSPECT,
        "eval",
        *arguments,
        "--solver",
        "iact/agent",
        "--display",
        "none",
        "--log-dir",
        str(logs),
    ]
    ran = subprocess.run(
        command, cwd=folder, env={**product.environment, **variables}, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    found: dict[str, EvalSample] = {}
    for file in logs.glob("*.eval"):
        log: EvalLog = read_eval_log(str(file))
        assert log.status == "success", log.error
        found |= {str(one.id): one for one in log.samples or ()}
        file.unlink()
    return found


def link(sample: EvalSample, name: str) -> object:
    """What the store says of the session."""
    return sample.store[f"SessionLink:{name}"]


def scored(sample: EvalSample) -> object:
    assert sample.scores is not None
    return sample.scores["includes"].value


def records_of(sample: EvalSample) -> list[Record]:
    """The records of the session that the store names, verified."""
    return list(replay(Path(str(link(sample, "journal"))), verify=True).records)


@pytest.mark.no_prefix_law("Inspect's client sends the same samples through one endpoint at once")
def test_tasks_are_solved_by_sessions(stage: Stage, tmp_path: Path) -> None:
    with Endpoint(played, crashes=True) as endpoint:
        _solve(stage, endpoint, tmp_path)
    endpoint.assert_used()


def _solve(stage: Stage, endpoint: Endpoint, tmp_path: Path) -> None:
    product = stage.product(endpoint.url)
    (tmp_path / "tasks.py").write_text(TASKS, encoding="utf-8")
    (product.data / "policy.toml").write_text(ASKS, encoding="utf-8")

    # The models of the settings: Inspect was given none.
    tasks = [f"tasks.py@{one}" for one in ("plain", "tokens", "messages", "seconds")]
    ours = evaluate(product, *tasks, "-S", "intent=1", folder=tmp_path)
    assert {name: scored(one) for name, one in ours.items()} == {
        "count": "C", "delete": "C", "talk": "C", "tokens": "I", "messages": "I", "seconds": "I",
    }  # fmt: skip
    limits = {name: (one.limit.type, one.limit.limit) for name, one in ours.items() if one.limit is not None}
    assert limits == {"tokens": ("token", 5000), "messages": ("message", 6), "seconds": ("time", 3)}

    # What stands in the store is what the journal says; the transcript has it too.
    for sample in ours.values():
        used = replay(Path(str(link(sample, "journal")))).view.usage
        assert (link(sample, "prompt_tokens"), link(sample, "completion_tokens")) == (
            used.prompt_tokens, used.completion_tokens,
        )  # fmt: skip
        assert [one.source for one in sample.events if one.event == "info"] == ["iact"]
    assert 0 < int(str(link(ours["tokens"], "prompt_tokens"))) <= 5000
    assert link(ours["tokens"], "bound") == "tokens"
    assert len(ours["messages"].messages) <= 6
    assert link(ours["count"], "unused") == ["tool lamp"]

    # Nobody is there to be asked: that is a no, and the root goes on.
    assert link(ours["delete"], "denied") == 1
    [refused] = [
        one.content for one in records_of(ours["delete"]) if isinstance(one.content, ClearanceAnswer)
    ]
    assert not refused.allow

    # A session of a sample is like any other: its journal is a log, and its dialogue the sample's messages.
    out = tmp_path / "session.eval"
    assert (
        write(load(data=str(product.data)), str(link(ours["count"], "session")), at=None, out=str(out)) == 0
    )
    session = (read_eval_log(str(out)).samples or [])[0]
    assert [one.text for one in session.messages] == [one.text for one in ours["count"].messages]
    assert [one.role for one in session.messages] == ["user", "assistant", "tool", "assistant"]

    # Inspect's own model in all roles: its log has what it was asked, and its limits end the work.
    at = {
        "SCRIPTED_BASE_URL": endpoint.url,
        "SCRIPTED_API_KEY": "any",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    theirs = evaluate(
        product,
        "tasks.py@plain",
        "tasks.py@tokens",
        "--model",
        "openai-api/scripted/scripted",
        folder=tmp_path,
        **at,
    )
    assert {name: scored(one) for name, one in theirs.items()} == {
        "count": "C", "delete": "C", "talk": "C", "tokens": "I",
    }  # fmt: skip
    for name in ("count", "delete", "talk"):
        counted = theirs[name].model_usage["openai-api/scripted/scripted"]
        assert counted.output_tokens == link(theirs[name], "completion_tokens")
        assert counted.total_tokens - counted.output_tokens == link(theirs[name], "prompt_tokens")
    asked = [one for one in theirs["count"].events if one.event == "model"]
    assert len(asked) == link(theirs["count"], "model_calls") == 2
    assert theirs["tokens"].limit is not None
    assert theirs["tokens"].limit.type == "token"


@pytest.mark.no_prefix_law("Inspect's client sends the same samples through one endpoint at once")
def test_turn_working_and_cost_limits_are_bounds_of_the_session(stage: Stage, tmp_path: Path) -> None:
    """Each ends the work as the bound of that kind does; the journal is whole and says which it was."""
    with Endpoint(played, crashes=True) as endpoint:
        # By the million tokens; so a call of this model can cost a few cents.
        prices = {"IACT_PRICE_PROMPT": "20", "IACT_PRICE_COMPLETION": "20"}
        product = stage.product(endpoint.url, **prices)
        (tmp_path / "tasks.py").write_text(TASKS, encoding="utf-8")
        tasks = [f"tasks.py@{one}" for one in ("turns", "working", "cost")]
        found = evaluate(product, *tasks, "-S", "intent=1", folder=tmp_path)
        limits = {
            name: (one.limit.type, one.limit.limit) for name, one in found.items() if one.limit is not None
        }
        assert limits == {"turns": ("turn", 3), "working": ("working", 3), "cost": ("cost", 1.0)}
        # Inspect looks at the working time as well, and may be the first to end it.
        assert (link(found["turns"], "bound"), link(found["cost"], "bound")) == ("turns", "money")
        assert link(found["turns"], "model_calls") == 3
        for sample in found.values():
            assert scored(sample) == "I"
            assert records_of(sample)[-1].kind in ("reply", "close"), "the journal is whole"
        used = [int(str(link(found["cost"], f"{one}_tokens"))) for one in ("prompt", "completion")]
        assert 0.5 < sum(used) * 20 / 1e6 <= 1.0
    endpoint.assert_used()


def test_the_embedded_model_solves_a_task(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(IACT_EMBEDDED="1.5b")
    (tmp_path / "tasks.py").write_text(TASKS, encoding="utf-8")
    [sample] = evaluate(product, "tasks.py@embedded", folder=tmp_path).values()
    assert "small model on board" in str(link(sample, "model"))
    assert link(sample, "status") == "ok"
    assert int(str(link(sample, "completion_tokens"))) > 0
    assert sample.output.completion.strip()


def test_what_can_not_be_taken_is_said(stage: Stage, tmp_path: Path) -> None:
    """A content that a session can't have is an error of the sample, in a sentence."""
    product = stage.product("http://127.0.0.1:9/v1", **NO_MODULES)
    (tmp_path / "heard.py").write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import Sample\n"
        "from inspect_ai.model import ChatMessageUser, ContentAudio, ContentText\n"
        "@task\n"
        "def heard():\n"
        "    content = [ContentText(text='Listen.'), ContentAudio(audio='data:audio/wav;base64,AA==', format='wav')]\n"
        "    return Task(dataset=[Sample(id='heard', input=[ChatMessageUser(content=content)])], fail_on_error=False)\n",
        encoding="utf-8",
    )
    [sample] = evaluate(product, "heard.py", folder=tmp_path).values()
    assert sample.error is not None
    assert "content of type 'audio'" in json.dumps(sample.error.message)
