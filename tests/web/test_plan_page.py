"""Plans and memories in the inspector, from the records that tell of them."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.async_api import expect

from iact.core.ports import JSON
from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage


def step(identity: str, *after: str, kind: str = "tool", call: str = "shell.run") -> dict[str, JSON]:
    return {"id": identity, "kind": kind, "call": call, "after": list(after)}


def version(session: FakeSession, number: int, reason: str, add: list[JSON], drop: list[JSON]) -> None:
    parent = number - 1 or None
    session.append(
        "plan", "/audit", version=number, parent=parent, reason=reason, add=add, drop=drop, rewire=[]
    )


def change(session: FakeSession, identity: str, to: str, number: int = 1, detail: str = "") -> None:
    session.append("node", "/audit", node=identity, version=number, to=to, attempt=1, detail=detail)


def planned() -> FakeSession:
    session = FakeSession("s")
    session.append("say", body="Is a kernel of ours vulnerable?")
    session.append("spawn", "/audit", caller="/", plan=True)
    add: list[JSON] = [
        step("kernel"),
        step("ports"),
        step("cves", "kernel", kind="agent", call="researcher"),
        step("report", "cves", "ports", kind="agent", call="writer"),
    ]
    version(session, 1, "as written", add, [])
    for identity, states in {"kernel": ["running", "executed"], "ports": ["running", "failed"]}.items():
        for state in states:
            change(session, identity, state, detail="exit 2" if state == "failed" else "")
    replaced: list[JSON] = [step("ports2"), step("report", "cves", "ports2", kind="agent", call="writer")]
    version(session, 2, "`ports` failed, another way was found", replaced, ["ports"])
    change(session, "ports2", "running", 2)
    session.show(node("/", "waiting"), replace(node("/audit", "acting"), kind="plan"))
    return session


def test_a_plan_is_drawn_live_with_its_versions() -> None:
    async def test() -> None:
        session = planned()
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            pane = page.locator("#inspector-panel")
            await expect(page.get_by_role("tab", name="Plan")).to_have_attribute("aria-selected", "true")
            await expect(pane).to_contain_text("Version 2 of 2")
            await expect(pane).to_contain_text("another way was found")
            steps = pane.locator("svg .step")
            await expect(steps).to_have_count(4)
            await expect(pane.locator('svg [data-step="kernel"]')).to_have_class("step executed tool")
            await expect(pane.locator('svg [data-step="ports2"]')).to_have_class("step running tool")
            await expect(pane.locator("svg .edge")).to_have_count(3)
            change(session, "ports2", "executed", 2)
            await expect(pane.locator('svg [data-step="ports2"]')).to_have_class("step executed tool")
            await expect(pane.get_by_role("status")).to_have_text("2 executed, 2 pending")
            # Below what it needs stands each step.
            tops = await pane.locator("svg").evaluate(
                "svg => Object.fromEntries([...svg.querySelectorAll('.step')]"
                ".map(g => [g.dataset.step, g.transform.baseVal[0].matrix.f]))"
            )
            assert tops["kernel"] < tops["cves"] < tops["report"]
            assert tops["ports2"] == tops["kernel"]
            await pane.get_by_role("button", name="Earlier").click()
            await expect(pane).to_contain_text("Version 1 of 2")
            await expect(pane.locator('svg [data-step="ports"]')).to_have_class("step failed tool")
            await expect(pane.locator(".plan-list")).to_contain_text("exit 2")
            # An agent without a plan has no such tab.
            await page.locator('[data-path="/"] > .node').click()
            await expect(page.get_by_role("tab", name="Plan")).to_be_hidden()

    run(test)


def test_a_hundred_steps_can_be_read() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("spawn", "/audit", caller="/")
        add: list[JSON] = []
        for number in range(100):
            needs = [f"step{number - 10}", f"step{(number * 7) % (number - 9)}"] if number >= 10 else []
            add.append(step(f"step{number}", *needs))
        version(session, 1, "as written", add, [])
        session.show(node("/"), node("/audit", "acting"))
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            pane = page.locator("#inspector-panel")
            await expect(pane.locator("svg .step")).to_have_count(100)
            await pane.get_by_role("button", name="Enlarge").click()
            dialog = page.get_by_role("dialog", name="Plan")
            boxes = await dialog.locator("svg .step rect").evaluate_all(
                "all => all.map(r => r.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
            )
            assert len(boxes) == 100
            # At full size, and none lies on another.
            assert min(right - left for left, _, right, _ in boxes) > 130
            for place, (left, top, right, bottom) in enumerate(boxes):
                for others in boxes[place + 1 :]:
                    apart = right <= others[0] or others[2] <= left or bottom <= others[1] or others[3] <= top
                    assert apart
            await page.keyboard.press("Escape")
            await expect(dialog).to_be_hidden()

    run(test)


def test_memories_say_what_they_were_found_by() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Go on.")
        rows: JSON = [
            {"id": "a", "kind": "preference", "score": 0.83, "why": "meaning", "at": "2026-01-02T03:04:05Z",
             "session": "old", "agent": "/"},
            {"id": "b", "kind": "fact", "score": 0.5, "why": "words", "at": "2026-01-02T03:04:05Z", "session": "old",
             "agent": "/web", "untrusted": ["tool:web.fetch"], "contradicts": ["c"]},
        ]  # fmt: skip
        lines = "- The user likes <b>short</b> answers.\n- The moon is of cheese."
        session.append("recall", "/", lines, rows=rows, ms=12)
        session.append("turn", body="Well.")
        async with stage(session) as scene:
            page = await scene.page("s")
            await page.get_by_role("tab", name="Memory").click()
            pane = page.locator("#inspector-panel")
            items = pane.locator(".recalled li")
            await expect(items).to_have_count(2)
            await expect(items.first).to_contain_text("The user likes <b>short</b> answers.")
            await expect(items.first).to_contain_text("preference · good match · by / · in session old")
            await expect(items.first.locator("[title='score 0.83 · meaning']")).to_be_visible()
            await expect(items.last).to_contain_text("from tool:web.fetch")
            await expect(items.last).to_contain_text("contradicted")
            session.append("recall", "/", "")
            await expect(pane).to_contain_text("Nothing was recalled.")
            await expect(pane.locator(".memories")).to_have_count(2)

    run(test)


def steered() -> FakeSession:
    """A plan that waited, with a paused step, a mended one, answers of models, and what they cost."""
    session = FakeSession("s")
    session.append("say", body="Look at our hosts.")
    session.append(
        "spawn", "/audit", caller="/", plan={"mode": "reflect", "options": {"n": 4}, "chosen": "Results decide.", "first": True}
    )  # fmt: skip
    session.append(
        "ask", "/audit", question="plan", role="smart", model="big-1", digest="d", usage=USED, thought=1
    )
    version(session, 1, "planned", [step("kernel"), step("ports")], [])
    session.append("extend", "/audit", version=1, reason="planned", add=[step("report", "kernel", "ports")])
    session.show(node("/", "waiting"), replace(node("/audit", "acting"), kind="plan"))
    return session


USED: JSON = {"prompt": 900, "cached": 0, "completion": 100}


def test_a_plan_waits_for_its_person_and_is_edited_and_started() -> None:
    async def test() -> None:
        session = steered()
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            pane = page.locator("#inspector-panel")
            await expect(pane.locator(".plan-outcome")).to_have_text("It waits for you to start it.")
            await expect(pane.locator("dl.plan-facts")).to_contain_text("Check after each stage, every 4")
            await expect(pane.locator("dl.plan-facts")).to_contain_text("Results decide.")
            await expect(pane).to_contain_text("Version 1")
            await expect(pane.locator("svg .step")).to_have_count(3)
            await expect(pane.locator(".plan-answers")).to_contain_text("big-1 (smart) · 1.0k tokens")
            await pane.get_by_role("button", name="Edit steps").press("Enter")
            dialog = page.get_by_role("dialog", name="Edit the plan")
            field = dialog.get_by_role("textbox")
            await expect(field).to_be_focused()
            await expect(field).to_have_value("goal: g\nsteps:\n- id: a\n  call: shell.run\n")
            await field.fill("steps: [{id: b, call: shell.run}]")
            await field.press("Control+Enter")
            await expect(dialog).to_be_hidden()
            assert ("edit", "/audit", "steps: [{id: b, call: shell.run}]") in session.calls
            await pane.get_by_role("button", name="Start").click()
            await expect(pane.get_by_role("button", name="Start")).to_be_hidden()
            assert ("start", "/audit") in session.calls

    run(test)


def test_a_step_is_paused_spoken_to_cancelled_and_tried_again_from_the_page() -> None:
    async def test() -> None:
        session = steered()
        session.append("control", "/audit", op="start", by="user")
        change(session, "kernel", "running")
        change(session, "ports", "failed", detail="exit 2")
        session.append(
            "extend", "/audit", version=1, reason="a replacement",
            add=[{"id": "micro_planner-1", "kind": "micro_planner", "task": "a replacement for ports", "spawned_by": "ports"}],
        )  # fmt: skip
        session.append(
            "node", "/audit", node="micro_planner-1", version=1, cause="succeeded", to="executed", attempt=1,
            output={"failure": "no such tool", "cause": "ss is missing", "action": "give_up", "confidence": 0.7, "reason": ""},
        )  # fmt: skip
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            pane = page.locator("#inspector-panel")
            await expect(pane.locator(".plan-list")).to_contain_text("It waits for kernel and ports.")
            await expect(pane.locator(".plan-list")).to_contain_text(
                "Examined by micro_planner-1: no such tool · cause: ss is missing · decision: give up · confidence 0.7"
            )
            await pane.get_by_role("button", name="Pause step report").press("Enter")
            await expect(pane.get_by_role("button", name="Resume step report")).to_be_visible()
            await expect(pane.locator(".plan-list")).to_contain_text("You paused it.")
            await pane.get_by_role("button", name="Resume step report").click()
            await pane.get_by_role("button", name="Message step kernel").click()
            dialog = page.get_by_role("dialog", name="Message about kernel")
            await dialog.get_by_role("textbox").fill("Only the newest.")
            await dialog.get_by_role("button", name="Send").click()
            await expect(dialog).to_be_hidden()
            await pane.get_by_role("button", name="Cancel step kernel").click()
            await pane.get_by_role("button", name="Try again step ports").click()
            wanted = [
                ("pause", "/audit", "report"), ("resume", "/audit", "report"),
                ("inject", "/audit", "Only the newest.", "deliver", "kernel"), ("cancel", "/audit", "kernel"),
                ("retry", "/audit", "ports"),
            ]  # fmt: skip
            await expect(pane.get_by_role("button", name="Try again step ports")).to_be_visible()
            assert [one for one in session.calls if one in wanted] == wanted
            await pane.get_by_role("button", name="Save as a template").click()
            form = page.get_by_role("dialog", name="Save this plan")
            name = form.get_by_role("textbox", name="Name", exact=True)
            await expect(name).to_be_focused()
            await name.fill("weekly")
            await name.press("Enter")
            await expect(form).to_be_hidden()
            assert ("save", "/audit", "weekly") in session.calls

    run(test)


def test_values_of_a_plan_are_left_open_when_it_is_saved_and_given_when_it_is_run() -> None:
    async def test() -> None:
        session = steered()
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            await page.locator("#inspector-panel").get_by_role("button", name="Save as a template").click()
            form = page.get_by_role("dialog", name="Save this plan")
            await form.get_by_role("textbox", name="Name", exact=True).fill("monthly")
            await form.get_by_role("checkbox", name="may.csv").check()
            # A name that is written marks its value, too.
            await form.get_by_role("textbox", name="Name of the value 3").fill("count")
            await form.get_by_role("textbox", name="Another value of the plan").fill("Bremen")
            await form.get_by_role("textbox", name="Name of the other value").fill("town")
            await form.get_by_role("button", name="Save", exact=True).click()
            await expect(form).to_be_hidden()
            assert ("save", "/audit", "monthly", "file=may.csv", "count=3", "town=Bremen") in session.calls

            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox").fill("monthly")
            await page.keyboard.press("Enter")
            form = page.get_by_role("dialog", name="Run the plan monthly")
            await expect(form).to_contain_text("Say the {{count}} longest lines of {{file}}.")
            await expect(form.get_by_label("file")).to_have_value("may.csv")
            await form.get_by_label("count").fill("many")
            await form.get_by_label("whether it is sorted").uncheck()
            await form.get_by_role("button", name="Show the plan").click()
            await expect(form).to_contain_text('`count` is a number, which "many" is not.')
            await form.get_by_label("count").fill("5")
            await form.get_by_label("file").fill("june.csv")
            await form.get_by_label("file").press("Enter")
            await expect(form).to_be_hidden()
            await expect(page).to_have_url(re.compile("/monthly$"))
            ((*_, text),) = (one for one in session.calls if one[0] == "plan")
            assert "head -n 5 june.csv # false" in str(text)

    run(test)


def test_what_a_plan_came_to_is_said_and_nothing_can_be_done_in_the_past() -> None:
    async def test() -> None:
        session = steered()
        change(session, "kernel", "executed")
        session.append(
            "reply", "/audit", "The plan came back partial.", to="/", status="ok", plan="partial",
            shortfall="The log ends too early.", confidence=0.4,
            verdict={"reached": "no", "because": "The log ends too early.", "by": "judge"}, missing={"ports": "exit 2"}, warnings=["Two were left out."],
        )  # fmt: skip
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            pane = page.locator("#inspector-panel")
            await expect(pane.locator(".plan-outcome")).to_have_text(
                "Its goal is not reached. The log ends too early."
            )
            await expect(pane.locator("dl.plan-facts")).to_contain_text("0.4")
            await expect(pane.locator(".plan-notes")).to_contain_text("ports: exit 2")
            await expect(pane.locator(".plan-notes")).to_contain_text("Two were left out.")
            await expect(pane.get_by_role("button", name="Pause step report")).to_be_hidden()

    run(test)


CROSSED = """svg => {
    const boxes = [...svg.querySelectorAll(".step")].map((one) => {
        const {e, f} = one.transform.baseVal[0].matrix, rect = one.querySelector("rect");
        return {id: one.dataset.step, x: e, y: f, r: e + rect.width.baseVal.value, b: f + rect.height.baseVal.value};
    });
    const crossed = new Set();
    for (const line of svg.querySelectorAll(".edge")) {
        for (let at = 0; at <= line.getTotalLength(); at += 1) {
            const {x, y} = line.getPointAtLength(at);
            for (const one of boxes) if (x > one.x && x < one.r && y > one.y + 0.5 && y < one.b - 0.5) crossed.add(one.id);
        }
    }
    return [...crossed];
}"""
"""The steps through whose box a line is drawn."""


def test_no_line_of_a_plan_is_drawn_through_a_step() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Is the machine well?")
        session.append("spawn", "/audit", caller="/", plan=True)
        # What looked like disk → cves → review: each line here passes layers in which others stand.
        add: list[JSON] = [
            step("kernel"),
            step("disk"),
            step("ports"),
            step("cves", "kernel"),
            step("review", "cves", "disk"),
            step("report", "review", "ports", "kernel"),
        ]
        version(session, 1, "as written", add, [])
        session.show(node("/", "waiting"), replace(node("/audit", "acting"), kind="plan"))
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            drawing = page.locator("#inspector-panel").locator("svg.graph")
            await expect(drawing.locator(".edge")).to_have_count(6)
            assert await drawing.evaluate(CROSSED) == []

    run(test)
