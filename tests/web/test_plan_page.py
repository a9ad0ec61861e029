"""Plans and memories in the inspector, from the records that tell of them."""

from __future__ import annotations

from dataclasses import replace

from playwright.async_api import expect

from core.ports import JSON
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
            pane = page.get_by_role("tabpanel")
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
            pane = page.get_by_role("tabpanel")
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
            pane = page.get_by_role("tabpanel")
            items = pane.locator(".recalled li")
            await expect(items).to_have_count(2)
            await expect(items.first).to_contain_text("The user likes <b>short</b> answers.")
            await expect(items.first).to_contain_text(
                "preference · score 0.83 · meaning · by / · in session old"
            )
            await expect(items.last).to_contain_text("from tool:web.fetch")
            await expect(items.last).to_contain_text("contradicted")
            session.append("recall", "/", "")
            await expect(pane).to_contain_text("Memory had nothing for this turn.")
            await expect(pane.locator(".memories")).to_have_count(2)

    run(test)
