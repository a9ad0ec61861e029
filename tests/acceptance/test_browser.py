"""A person at the page: everything is real except the model, whose every word is scripted.

Send a message, watch the stream, stop a child two levels down, tell it something else, let it continue and
see it obey; reload in the middle, twice, and lose nothing. Go back through ten thousand records, fork in
the middle, and continue there.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, reap, until
from tests.acceptance.test_modules import SCOUT, of, reach
from tests.acceptance.test_scenes import shell
from tests.endpoint import Endpoint, Gate, Reply
from tests.rounds import LONG
from tests.web.browser import ARGUMENTS, PATIENCE, REPORT_VIOLATIONS, Wrongs, chromium
from tests.web.long import long_journal
from tests.web.scrub import SHOWS, expected

MANY: Final = 10_000 if LONG else 3_000
SLOW: Final = 300_000
"""Milliseconds for what needs a container to start."""


@contextmanager
def page_of(server: Server) -> Iterator[Page]:
    """A page that is connected; at its end nothing may have gone wrong in it."""
    origin = f"http://127.0.0.1:{server.port}"
    wrongs = Wrongs(origin)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        context = browser.new_context(viewport={"width": 1360, "height": 860}, reduced_motion="reduce")
        context.add_init_script(REPORT_VIOLATIONS)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", wrongs.script_error)
        page.on("console", lambda message: wrongs.console(message.type, message.text))
        page.on("request", lambda request: wrongs.request(request.url))
        page.goto(f"{origin}/?token={server.token}")
        connected(page)
        yield page
        browser.close()
    assert wrongs.found == []


def connected(page: Page) -> None:
    expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")


def choose(page: Page, path: str) -> None:
    """Select an agent in the tree."""
    page.locator(f'[data-path="{path}"] > .node').click()
    expect(page.locator(f'[data-path="{path}"]')).to_have_attribute("aria-selected", "true")


def records_known(page: Page) -> int:
    """How many records the page says it has of the session."""
    text = page.locator("[data-role=inspector]").inner_text()
    found = re.search(r"^Steps recorded\n+(\d+)$", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])


def keep_screenshot(page: Page, name: str, folder: Path) -> None:
    """Take a picture, for whoever looks into a failed run; those of the documentation are taken by `make screenshots`."""
    page.screenshot(path=folder / name)


def test_a_person_steps_in_two_levels_down_and_reloads_without_loss(stage: Stage, tmp_path: Path) -> None:
    counting = Gate()
    endpoint = stage.endpoint(
        {
            "/": [
                'I\'ll have it done.\n\n```CALL lead role="a foreman"\nHave the numbers from one to five counted out.\n```\n',
                "The numbers were counted **backwards**, as you wished.",
            ],
            "/lead": [
                "This is for one pair of hands.\n\n```CALL worker\nCount from one to five, in words.\n```\n",
                "The worker counted from five to one.",
            ],
            "/lead/worker": [
                Reply("One, two, three, four, five. Shall I go on?", gates={24: counting}),
                "Backwards, then.\n\n```shell.run\nprintf '%s\\n' five four three two one\n```\n",
                "| first | last |\n|---|---|\n| five | one |\n\nCounted backwards.",
            ],
        }
    )
    product = stage.product(endpoint)
    with product.serving() as server:
        with page_of(server) as page:
            page.get_by_label("Message to the root agent").fill("Have someone count to five.")
            page.keyboard.press("Enter")

            # The stream stands still in the middle; the page shows what is there.
            worker = page.locator('[data-path="/lead/worker"] > .node')
            expect(worker).to_be_visible(timeout=SLOW)
            choose(page, "/lead/worker")
            assert counting.wait(SLOW / 1000)
            draft = page.locator(".entry.draft")
            expect(draft).to_contain_text("One, two, three, four,")
            expect(page.locator(".entry.incoming")).to_contain_text("Count from one to five, in words.")

            # Reload in the middle of it: the same place, the same text.
            page.reload()
            connected(page)
            expect(page.locator("[data-role=agent-name]")).to_have_text("/lead/worker")
            expect(draft).to_contain_text("One, two, three, four,")

            # Pause it, by mouse on the node; its text is discarded, and kept as discarded.
            worker.hover()
            worker.get_by_role("button", name="Pause").click()
            expect(page.locator("[data-role=agent-state]")).to_have_text("paused")
            expect(draft).to_have_count(0)
            expect(page.locator(".dialogue")).to_contain_text("Stopped when you paused")
            counting.release()

            page.get_by_label("Message /lead/worker").fill("Count backwards instead.")
            page.keyboard.press("Enter")
            expect(page.locator(".entry.intervention")).to_contain_text("Count backwards instead.")
            expect(page.locator(".entry.intervention .receipt")).to_have_text("Not read yet")
            page.reload()
            connected(page)
            expect(page.locator(".entry.intervention")).to_contain_text("Count backwards instead.")
            expect(page.locator("[data-role=agent-state]")).to_have_text("paused")
            assert len(endpoint.of("/lead/worker")) == 1

            # Let it go on, by keyboard, and see it obey.
            page.locator('[data-path="/lead/worker"]').focus()
            page.keyboard.press("p")
            result = page.locator(".card.result")
            expect(result).to_contain_text("five\nfour\nthree\ntwo\none", timeout=SLOW)
            expect(result).to_contain_text("exit 0")
            expect(page.locator(".entry.intervention .receipt")).to_have_text(re.compile(r"Read at \d"))
            expect(page.locator(".entry.reply")).to_contain_text("Counted backwards.")
            keep_screenshot(page, "worker.png", tmp_path)
            page.emulate_media(color_scheme="dark")
            keep_screenshot(page, "worker-dark.png", tmp_path)
            page.emulate_media(color_scheme="light")

            choose(page, "/lead")
            expect(page.locator(".entry.child")).to_contain_text("Counted backwards.")
            choose(page, "/")
            expect(page.locator(".entry.reply strong")).to_have_text("backwards")
            expect(page.locator(".entry.incoming")).to_contain_text("Have someone count to five.")
            keep_screenshot(page, "session.png", tmp_path)
            page.set_viewport_size({"width": 360, "height": 720})
            keep_screenshot(page, "narrow.png", tmp_path)
            page.set_viewport_size({"width": 1360, "height": 860})

            # What the page has is what is on disk, and a fresh page has the same.
            [journal] = product.journals()
            until(
                lambda: records_known(page) == len(read_journal(journal).records), "the page to have it all"
            )
            before = page.locator(".dialogue").inner_text()
            page.reload()
            connected(page)
            expect(page.locator(".entry.reply strong")).to_have_text("backwards")
            until(lambda: page.locator(".dialogue").inner_text() == before, "the same dialogue")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0

    told = endpoint.of("/lead/worker")[1]
    assert "Count backwards instead." in told.last
    assert "One, two" not in "".join(content for _, content in told.messages)
    for others in ("/", "/lead"):
        assert not [one for one in endpoint.of(others) if "Count backwards instead." in str(one.messages)]


def test_thousands_of_records_are_scrubbed_and_forked_in_the_middle(tmp_path: Path) -> None:
    # The journal is made up and does not verify, so this product is not one of the stage's.
    data = tmp_path / "data"
    journal = long_journal(data / "sessions", MANY)
    records = read_journal(journal).records
    middle = next(one.n for one in records if one.n > MANY // 2 and one.kind == "reply" and one.agent == "/")
    agents, newest = expected(journal, middle)
    before = journal.read_bytes()
    with Endpoint({"/": ["This is where we **go on**."]}, by_turn=False) as endpoint:
        product = Product.at(data, endpoint)
        try:
            with product.serving() as server, page_of(server) as page:
                page.locator("[data-role=sessions]").click()
                page.get_by_role("button", name="What to do with Task 1: read the lines.").click()
                page.locator(".session-actions").get_by_role("button", name="Replay").click()
                page.get_by_role("tab", name="Agents").click()
                expect(page.locator("[data-role=replay-total]")).to_have_text(f"of {MANY}", timeout=SLOW)
                times = []
                for _ in range(3):
                    times.append(page.evaluate(SHOWS, [middle, agents, newest]))
                    page.evaluate(SHOWS, [MANY, *expected(journal, MANY)])
                print(f"{MANY} records, to record {middle}: {', '.join(f'{took:.0f}' for took in times)} ms")
                assert all(took >= 0 for took in times), times
                page.evaluate(SHOWS, [middle, agents, newest])
                keep_screenshot(page, "replay.png", tmp_path)
                page.emulate_media(color_scheme="dark")
                keep_screenshot(page, "replay-dark.png", tmp_path)
                page.emulate_media(color_scheme="light")
                page.get_by_role("tab", name="Context").click()
                expect(page.locator("#inspector-panel")).to_contain_text("Unchanged", timeout=SLOW)
                keep_screenshot(page, "context.png", tmp_path)

                page.locator("[data-role=text]").fill("And if we went on from here?")
                page.keyboard.press("Enter")
                expect(page.locator(".entry.reply strong").last).to_have_text("go on", timeout=SLOW)
                expect(page.get_by_role("treeitem")).to_have_count(agents, timeout=SLOW)
                [fork] = product.journals() - {journal}
                expect(page).to_have_url(re.compile(f"#{fork.parent.name}$"))
                forked = read_journal(fork).records
                # The journal that was made up is of an older version, which a fork is brought up from.
                # Other settings than it was made under name its models anew.
                kinds = [one.kind for one in forked[middle:] if one.kind not in ("migrate", "control")]
                assert kinds[:2] == ["fork", "say"]
                assert [one.digest for one in forked[:middle]] == [one.digest for one in records[:middle]]
            assert journal.read_bytes() == before
            assert "And if we went on from here?" in endpoint.of("/")[-1].last
        finally:
            reap(data)


def test_two_people_watch_a_plan_and_one_lets_it_go_on(stage: Stage, tmp_path: Path) -> None:
    steps = [
        '  - {id: kernel, call: shell.run, params: {command: "uname -r"}}',
        '  - {id: release, call: shell.run, params: {command: "head -n 1 /etc/os-release"}}',
        '  - {id: report, call: shell.run, params: {command: "echo reported"}, after: [kernel, release]}',
    ]
    plan = "```PLAN audit\ngoal: Look at the machine\nsteps:\n" + "\n".join(steps) + "\n```\n"
    endpoint = stage.endpoint({"/": [f"I have a plan.\n\n{plan}", "All is **well**."]})
    product = stage.product(endpoint)
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["shell.*"]\n'
    (product.data / "policy.toml").write_text(policy, encoding="utf-8")
    with product.serving() as server:
        with page_of(server) as one:
            one.get_by_label("Message to the root agent").fill("How is the machine?")
            one.keyboard.press("Enter")
            bar = one.get_by_role("region", name="Approvals")
            expect(bar).to_contain_text("Root agent › audit", timeout=SLOW)
            # Two steps wait for the same reason: they are one question, which can be taken apart.
            expect(bar).to_contain_text("asks 2 times to run shell.run")
            bar.get_by_role("button", name="One by one").click()
            expect(bar).to_contain_text("1 of 2")
            choose(one, "/audit")
            pane = one.locator("#inspector-panel")
            expect(pane.locator("svg .step")).to_have_count(3)
            expect(pane.locator('svg [data-step="report"]')).to_have_class("step pending tool")
            expect(bar.get_by_role("button", name="Approve")).to_be_enabled()
            keep_screenshot(one, "approval.png", tmp_path)
            one.emulate_media(color_scheme="dark")
            keep_screenshot(one, "approval-dark.png", tmp_path)
            one.emulate_media(color_scheme="light")
            # Somebody else, who came later, sees the same two questions; what is answered here is gone there.
            other = one.context.new_page()
            other.goto(one.url)
            connected(other)
            theirs = other.get_by_role("region", name="Approvals")
            theirs.get_by_role("button", name="One by one").click()
            expect(theirs).to_contain_text("1 of 2")
            theirs.get_by_role("button", name="Approve").click()
            expect(bar).not_to_contain_text("of 2")
            bar.get_by_label("Remember:").select_option("function")
            bar.get_by_role("button", name="Approve").click()
            # The third step is covered by what is remembered.
            choose(one, "/")
            expect(one.locator(".entry.reply strong")).to_have_text("well", timeout=SLOW)
            expect(bar).to_be_hidden()
            expect(theirs).to_be_hidden()
            choose(one, "/audit")
            expect(pane.locator("svg .step.executed")).to_have_count(3)
            keep_screenshot(one, "plan.png", tmp_path)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0
    [journal] = product.journals()
    answers = [
        one for one in read_journal(journal).records if one.kind == "clearance" and one.text("op") == "answer"
    ]
    assert len(answers) == 2


def test_a_module_that_is_added_in_the_page_while_an_agent_runs_is_used_by_it(
    stage: Stage, tmp_path: Path
) -> None:
    source = tmp_path / "scout.py"
    source.write_text(SCOUT, encoding="utf-8")
    endpoint = stage.endpoint(
        {
            "/": [
                shell("touch here; while [ ! -e go ]; do sleep 0.02; done; echo the scout may go"),
                reach("a:1"),
                "There is **nothing** outside.",
            ]
        }
    )
    product = stage.product(endpoint)
    with product.serving() as server:
        with page_of(server) as page:
            page.get_by_label("Message to the root agent").fill("Have the scout look outside.")
            page.keyboard.press("Enter")
            until(
                lambda: bool(list(product.data.glob("sessions/*/workspace/here"))),
                "the agent at work",
                within=180,
            )
            facts = page.locator("#inspector-panel")
            running = facts.locator("dt", has_text="Modules started").locator(
                "xpath=following-sibling::dd[1]"
            )
            expect(running).to_have_text("1")
            page.keyboard.press("Alt+Shift+O")
            dialog = page.get_by_role("dialog", name="Modules")
            dialog.get_by_label("Add a module").fill(str(source))
            page.keyboard.press("Enter")
            scout = dialog.locator("[data-module=scout]")
            expect(scout).to_be_visible(timeout=SLOW)
            page.keyboard.press("Escape")
            [here] = product.data.glob("sessions/*/workspace/here")
            here.with_name("go").touch()
            expect(page.locator(".entry.reply strong")).to_have_text("nothing", timeout=SLOW)
            expect(running).to_have_text("2")
            expect(page.locator(".card.result").last).to_contain_text("There is no way out.")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0
    [journal] = product.journals()
    [result] = of(read_journal(journal).records, "result", "scout.reach")
    assert (result.text("status"), result.body) == ("ok", "There is no way out.")
