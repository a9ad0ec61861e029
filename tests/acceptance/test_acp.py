"""An editor drives `iact acp` with the official SDK's client: every method, with the gate and the journal."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from pathlib import Path

import pytest
from acp import RequestError, resource_block, text_block
from acp.helpers import embedded_text_resource, image_block
from acp.schema import (
    CurrentModeUpdate,
    FileEditToolCallContent,
    SessionConfigOptionSelect,
    SessionInfoUpdate,
    ToolCallStart,
    UsageUpdate,
)

from iact.core.journal import read_journal
from iact.core.records.forms import FormAnswer
from iact.core.records.record import Record
from iact.faces.acp.prompt import Block
from tests.acceptance.conftest import Stage
from tests.acceptance.editor import Editor, Person, editing, shown
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_clearance import MAKE, asking
from tests.acceptance.test_ways import ALL, Model
from tests.endpoint import Gate, Reply

CALLS = "Let me ask.\n\n```CALL coder\nFix it.\n```"


def directory(stage: Stage) -> Path:
    """What the editor has open."""
    made = stage.folder / "project"
    made.mkdir(exist_ok=True)
    return made


def records(product: Product, session: str) -> list[Record]:
    return read_journal(product.data / "sessions" / session / "journal.md").records


def verified(product: Product) -> None:
    for journal in product.journals():
        ran = product.run("replay", "--verify", str(journal))
        assert ran.status == 0, ran
        assert product.run("journal", "check", str(journal)).status == 0


async def test_a_prompt_is_answered_with_text_thoughts_and_child_agents(stage: Stage) -> None:
    script: dict[str, list[Reply | str]] = {
        "/": [CALLS, Reply("All is well.", reasoning="Hm.")],
        "/coder": ["Fixed."],
    }
    product = stage.product(stage.endpoint(script), **NO_MODULES)
    async with editing(product) as editor:
        session = await editor.new(directory(stage))
        ended = await editor.prompt(session.session_id, "Fix my code.")
        person = editor.person
        assert ended.stop_reason == "end_turn"
        assert ended.usage is not None
        assert ended.usage.output_tokens > 0
        assert person.said == "Let me ask.All is well."
        assert person.thought == "Hm."
        assert list(person.calls.values()) == [("CALL coder Fix it.", "completed")]
        (call,) = [one for one in person.of(ToolCallStart) if isinstance(one, ToolCallStart)]
        assert call.field_meta == {"iact": {"path": "/"}}
        assert "Fixed." in repr(person.updates)
        assert person.of(UsageUpdate)
        (titled,) = person.of(SessionInfoUpdate)
        assert isinstance(titled, SessionInfoUpdate)
        assert [titled.title] == [one.title for one in (await editor.agent.list_sessions()).sessions]
        assert person.heard == ""
    opened = records(product, session.session_id)[0]
    assert opened.text("workspace") == str(directory(stage).resolve())
    verified(product)


@pytest.mark.parametrize(("choose", "allowed"), [("once", True), ("call", True), ("no", False)])
async def test_a_call_that_needs_clearance_is_asked_about_in_full(
    stage: Stage, choose: str, allowed: bool
) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    folder = directory(stage)
    async with editing(product, choose) as editor:
        session = await editor.new(folder)
        ended = await editor.prompt(session.session_id, "Make it.")
        assert ended.stop_reason == "end_turn"
        ((call, options),) = editor.person.asked
        assert call.raw_input == {"command": "touch made"}
        assert "touch made" in shown(call)
        assert [one.kind for one in options] == ["allow_once", "allow_always", "reject_once"]
        assert editor.person.calls[call.tool_call_id][1] == ("completed" if allowed else "failed")
    assert (folder / "made").exists() == allowed
    (answer,) = [one for one in records(product, session.session_id) if one.text("op") == "answer"]
    assert answer.fields["allow"] is allowed
    assert answer.text("by") == "user"
    assert answer.text("remember") == ("call" if choose == "call" else "")
    verified(product)


async def test_what_the_gate_refuses_is_refused(stage: Stage) -> None:
    write = "```files.write path=made\nNow.\n```"
    product = stage.product(stage.endpoint({"/": [write, "Over."]}))
    folder = directory(stage)
    async with editing(product, None, "--intent", "0") as editor:
        session = await editor.new(folder)
        assert (await editor.prompt(session.session_id, "Make it.")).stop_reason == "end_turn"
        assert editor.person.asked == []
        ((_, status),) = editor.person.calls.values()
        assert status == "failed"
        (call,) = [one for one in editor.person.of(ToolCallStart) if isinstance(one, ToolCallStart)]
        assert call.locations is not None
        assert [place.path for place in call.locations] == [str((folder / "made").resolve())]
    assert not (folder / "made").exists()


async def test_changes_that_wait_are_put_to_the_person(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["I remove it.\n\n```shell.run\nrm old\n```", "Gone."]}))
    folder = directory(stage)
    (folder / "old").write_text("old\n", encoding="utf-8")
    async with editing(product, "apply") as editor:
        session = await editor.new(folder)
        await editor.prompt(session.session_id, "Remove it.")
        ((call, _),) = editor.person.asked
        assert "delete old" in shown(call)
        (change,) = [one for one in call.content or () if isinstance(one, FileEditToolCallContent)]
        old = (folder / "old").resolve()
        assert (change.path, change.old_text, change.new_text) == (str(old), "old\n", "")
        assert [place.path for place in call.locations or ()] == [str(old)]
        assert "```" not in editor.person.said
    assert not (folder / "old").exists()
    verified(product)


SIGN = "```PLAN letter\nsteps:\n  - {id: sign, by: person, task: Sign the letter.}\n```"


@pytest.mark.parametrize("forms", [True, False])
async def test_a_step_that_is_the_persons_comes_as_a_form_where_the_editor_has_forms(
    stage: Stage, forms: bool
) -> None:
    product = stage.product(stage.endpoint({"/": [SIGN, "It is signed."]}), **NO_MODULES)
    person = Person(fills_in={"answer": "on 3 May"})
    async with editing(product, person, forms=forms) as editor:
        session = (await editor.new(directory(stage))).session_id
        ended = await editor.prompt(session, "Have it signed.")
        if not forms:
            assert "Sign the letter." in person.said
            ended = await editor.prompt(session, "on 3 May")
        assert ended.stop_reason == "end_turn"
        assert person.said.endswith("It is signed.")
        assert ["Sign the letter." in message for message, _ in person.forms] == [True] * forms
    (answer,) = [
        record.content for record in records(product, session) if isinstance(record.content, FormAnswer)
    ]
    assert (answer.by, answer.values) == ("user", {"answer": "on 3 May"})
    verified(product)


async def test_a_cancelled_prompt_ends_so_and_its_question_is_withdrawn(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE]})))
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        async with asyncio.TaskGroup() as group:
            prompt = group.create_task(editor.prompt(session, "Make it."))
            await editor.person.sees(lambda: bool(editor.person.asked))
            await editor.agent.cancel(session_id=session)
        assert prompt.result().stop_reason == "cancelled"
        assert [status for _, status in editor.person.calls.values()] == ["failed"]
    assert not (directory(stage) / "made").exists()
    verified(product)


async def test_a_cancel_stops_what_is_being_written(stage: Stage) -> None:
    gate = Gate()
    endpoint = stage.endpoint({"/": [Reply("One, two, three.", gates={5: gate})]})
    product = stage.product(endpoint, **NO_MODULES)
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        async with asyncio.TaskGroup() as group:
            prompt = group.create_task(editor.prompt(session, "Count."))
            await editor.person.sees(lambda: editor.person.said.startswith("One"))
            await editor.agent.cancel(session_id=session)
        assert prompt.result().stop_reason == "cancelled"
        gate.release()


async def test_a_session_is_listed_loaded_resumed_closed_and_deleted(stage: Stage) -> None:
    script = {"/": [CALLS, "All is well.", "Again."], "/coder": ["Fixed."]}
    product = stage.product(stage.endpoint(script), **NO_MODULES)
    folder = directory(stage)
    async with editing(product) as editor:
        session = (await editor.new(folder)).session_id
        await editor.prompt(session, "Fix my code.")
        live = editor.person.said, editor.person.calls
        await editor.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="is not open here"):
            await editor.prompt(session, "Hello?")
    async with editing(product) as editor:
        found = await editor.agent.list_sessions(cwd=str(folder.resolve()))
        assert [(one.session_id, one.title) for one in found.sessions] == [(session, "Fix my code.")]
        assert (await editor.agent.list_sessions(cwd="/nowhere")).sessions == []
        await editor.agent.load_session(cwd=str(folder), session_id=session, mcp_servers=[])
        assert editor.person.heard == "Fix my code."
        assert (editor.person.said, editor.person.calls) == live
    async with editing(product) as editor:
        await editor.agent.resume_session(cwd=str(folder), session_id=session, mcp_servers=[])
        assert editor.person.updates == []
        await editor.prompt(session, "And now?")
        assert editor.person.said == "Again."
        deleted = await editor.agent._conn.send_request("session/delete", {"sessionId": session})
        assert deleted == {}
        assert (await editor.agent.list_sessions()).sessions == []


@pytest.mark.no_prefix_law("a fork begins as the session that it comes from")
async def test_a_fork_is_a_session_of_its_own(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["One.", "Two."]}), **NO_MODULES)
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        await editor.prompt(session, "Say one.")
        fork = await editor.agent.fork_session(cwd=str(directory(stage)), session_id=session)
        assert fork.session_id != session
        editor.person.forget()
        await editor.prompt(fork.session_id, "Say two.")
        assert editor.person.said == "Two."
        assert {one for one, _ in editor.person.updates} == {fork.session_id}
    assert [one.body for one in records(product, session) if one.kind == "reply"] == ["One."]


async def test_the_way_of_working_and_the_intent_can_be_set(stage: Stage) -> None:
    product = stage.product(**NO_MODULES)
    async with editing(product) as editor:
        session = await editor.new(directory(stage))
        assert session.modes is not None
        assert session.modes.current_mode_id == "dialogue"
        assert {"auto", "static"} <= {one.id for one in session.modes.available_modes}
        await editor.agent.set_session_mode(session_id=session.session_id, mode_id="auto")
        (mode,) = editor.person.of(CurrentModeUpdate)
        assert isinstance(mode, CurrentModeUpdate)
        assert mode.current_mode_id == "auto"
        with pytest.raises(RequestError, match="no way of working 'fast'"):
            await editor.agent.set_session_mode(session_id=session.session_id, mode_id="fast")
        changed = await editor.agent.set_config_option(
            session_id=session.session_id, config_id="intent", value="0"
        )
        assert changed is not None
        options = {
            one.id: one.current_value
            for one in changed.config_options
            if isinstance(one, SessionConfigOptionSelect)
        }
        assert options == {"way": "auto", "intent": "0"}
    (intent,) = [one for one in records(product, session.session_id) if one.text("op") == "intent"]
    assert intent.fields["value"] == 0


async def test_a_goal_is_planned_and_its_steps_are_shown(stage: Stage) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        await editor.agent.set_session_mode(session_id=session, mode_id="analyze")
        ended = await editor.prompt(session, "Find one and two.")
        assert ended.stop_reason == "end_turn"
        steps = {text.partition(":")[0]: status for text, status in editor.person.plan}
        assert steps["one"] == steps["two"] == "completed"
        assert "One and two." in editor.person.said
        live = editor.person.plan
    async with editing(product) as editor:
        loaded = await editor.agent.load_session(
            cwd=str(directory(stage)), session_id=session, mcp_servers=[]
        )
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "analyze"
        assert editor.person.plan == live
    verified(product)


async def test_files_of_a_prompt_are_uploaded(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": ["Seen."]}), **NO_MODULES)
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        note = resource_block(embedded_text_resource("file:///tmp/note.txt", "Read me."))
        blocks: list[Block] = [text_block("Look."), note, image_block(pixel, "image/png")]
        await editor.agent.prompt(session_id=session, prompt=blocks)
    uploads = [one for one in records(product, session) if one.kind == "upload"]
    assert [(one.text("file"), one.text("media")) for one in uploads] == [
        ("note.txt", "text/plain"),
        ("image-2.png", "image/png"),
    ]


async def test_a_killed_process_loses_nothing_that_was_asked(stage: Stage) -> None:
    """Killed while a call waits: the next client that loads the session is asked, and its answer counts."""
    endpoint = stage.endpoint({"/": [MAKE, "Over."]}, by_turn=True, crashes=True)
    product = asking(stage.product(endpoint))
    folder = directory(stage)
    async with editing(product) as editor:
        session = (await editor.new(folder)).session_id
        prompt = asyncio.ensure_future(editor.prompt(session, "Make it."))
        await editor.person.sees(lambda: bool(editor.person.asked))
        await editor.kill()
        with pytest.raises(ConnectionError):
            await prompt
    async with editing(product, "once") as editor:
        await editor.agent.load_session(cwd=str(folder), session_id=session, mcp_servers=[])
        assert editor.person.heard == "Make it."
        await editor.person.sees(lambda: editor.person.said.endswith("Over."))
        assert len(editor.person.asked) == 1
    assert (folder / "made").exists()
    verified(product)


async def refusal(editor: Editor, method: str, params: object) -> RequestError:
    with pytest.raises(RequestError) as raised:
        await editor.agent._conn.send_request(method, params)
    return raised.value


async def test_errors_are_one_sentence(stage: Stage) -> None:
    product = stage.product(**NO_MODULES)
    folder = str(directory(stage))
    async with editing(product) as editor:
        for method, params, code, sentence in (
            ("session/new", {"cwd": "here", "mcpServers": []}, -32602, "The directory 'here' is not absolute."),
            ("session/new", {"cwd": f"{folder}/no", "mcpServers": []}, -32602, f"There is no directory {folder}/no to work in."),
            ("session/new", {"cwd": folder}, -32602, "The parameters of session/new are wrong: mcpServers: Field required."),
            ("session/frobnicate", {}, -32601, "There is no method session/frobnicate."),
            ("session/prompt", {"sessionId": "x", "prompt": [{"type": "text", "text": "?"}]}, -32602,
             "The session x is not open here. Load or resume it first."),
        ):  # fmt: skip
            error = await refusal(editor, method, params)
            assert (error.code, str(error)) == (code, sentence)
        unknown = {"sessionId": "20200101-000000-00000000", "cwd": folder, "mcpServers": []}
        error = await refusal(editor, "session/load", unknown)
        assert str(error).endswith(".")
        session = (await editor.new(directory(stage))).session_id
        error = await refusal(editor, "session/prompt", {"sessionId": session, "prompt": []})
        assert str(error) == "The prompt is empty."


async def test_a_model_that_fails_ends_the_prompt_with_an_error(stage: Stage) -> None:
    product = stage.product("http://127.0.0.1:9/v1", **NO_MODULES)
    async with editing(product) as editor:
        session = (await editor.new(directory(stage))).session_id
        with pytest.raises(RequestError) as raised:
            await editor.prompt(session, "Hello?")
        assert raised.value.code == -32603


def test_without_an_editor_it_says_what_it_is_for(stage: Stage) -> None:
    product = stage.product(**NO_MODULES)
    with (stage.folder / "nothing").open("w+") as nothing, product.started("acp") as process:
        assert process.wait(300) == 2
        assert nothing.read() == ""


def cold(product: Product, code: str) -> subprocess.CompletedProcess[str]:
    """Python that starts with nothing imported."""
    return subprocess.run(
        [sys.executable, "-c", code], env=product.environment, cwd=product.data.parent, capture_output=True,
        text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_without_its_package_it_says_what_to_install(stage: Stage) -> None:
    code = "import sys; sys.modules['acp'] = None; from iact.cli import main; sys.exit(main(['acp']))"
    ran = cold(stage.product(**NO_MODULES), code)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "iact: iact acp needs a package that is not installed. Install it: pip install 'iact[acp]'.\n"
    )


def test_nothing_of_it_is_imported_where_it_is_not_used(stage: Stage) -> None:
    code = (
        "import sys, iact.cli.program, iact.commands.serve, iact.commands.run; sys.exit('acp' in sys.modules)"
    )
    assert cold(stage.product(**NO_MODULES), code).returncode == 0
