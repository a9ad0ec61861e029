"""The tutorial as a newcomer plays it, with the messages, commands and buttons that docs/tutorial.md names.

The messages and commands are read from the tutorial itself. A test plays it (`test_tutorial_page.py`), and its pictures
are taken on the way (`make screenshots`).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect

from tests.acceptance.product import ROOT, Product, Server
from tests.acceptance.test_scenes import shell
from tests.endpoint import Gate, Reply, Request

TEXT: Final = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")

MESSAGES: Final = re.findall(r"^> (.+)$", TEXT, re.MULTILINE)
"""What the tutorial asks the newcomer to write, in its order."""

TIDY, THREE, PLANNED, DELETE, READ, TWENTY, PREFER = range(7)
"""The places of the messages."""

SQUARES: Final = re.findall(r"Press \*\*(Write .+?)\*\*", TEXT)[0]
"""The suggestion of the first page that the tutorial takes."""

CHILDREN: Final = ("trains", "planes", "ships")

PICTURES: Final = (
    "tutorial-review.png",
    "tutorial-children.png",
    "tutorial-plan.png",
    "tutorial-question.png",
)

_SUMMARY: Final = """\
printf 'Rows: %s\\nCities:\\n%s\\n' "$(tail -n +2 people.csv | wc -l)" "$(tail -n +2 people.csv | cut -d, -f2)" > summary.md"""

_PLAN: Final = json.dumps(
    {
        "goal": "Count the rows, list the cities, and write both down",
        "steps": [
            {"id": "rows", "call": "shell.run", "params": {"command": "tail -n +2 people.csv | wc -l"}},
            {
                "id": "cities",
                "call": "shell.run",
                "params": {"command": "tail -n +2 people.csv | cut -d, -f2"},
            },
            {
                "id": "summary",
                "call": "shell.run",
                "params": {"command": _SUMMARY},
                "after": ["rows", "cities"],
            },
        ],
    }
)

Pictured = Callable[[Page, str], None]
"""Takes a picture of the page, under this name."""


class TutorialModel:
    """A model that does what the tutorial asks for. Its children write until their gates are released."""

    def __init__(self) -> None:
        self.gates = {name: Gate(name) for name in CHILDREN}

    def __call__(self, request: Request) -> Reply | str:
        """The reply of the model."""
        if not request.agent:
            return _PLAN if "Plan the steps" in request.last else "Both are in summary.md."
        name = request.agent.strip("/")
        if name:
            return Reply(f"**{name.title()}** are quiet, quick and cheap.", gates={12: self.gates[name]})
        return _reply(request)


def _reply(request: Request) -> str:
    """What the root does about the newest message."""
    script = "printf '%s\\n' 'print([n * n for n in range(1, {last})])' > squares.py && python3 squares.py"
    if SQUARES in request.last:
        return shell(script.format(last=11))
    replies = {
        TWENTY: shell(script.format(last=21)),
        TIDY: shell("awk '!seen[$0]++' people.csv > /tmp/tidy && cat /tmp/tidy > people.csv"),
        THREE: "I ask three agents side by side.\n\n"
        + "\n\n".join(f"```CALL_ASYNC {name}\nThe three best arguments for {name}.\n```" for name in CHILDREN)
        + "\n\n```WAIT\n```",
        DELETE: shell("rm people.csv"),
        READ: "I look.\n\n```web.fetch\nhttps://example.org/\n```",
        PREFER: "Noted.",
    }
    for place, reply in replies.items():
        if MESSAGES[place] in request.last:
            return reply
    if any("!seen" in text for role, text in request.messages[-2:] if role == "assistant"):
        return shell("echo 'Removed the second row of Ada.' > notes.md")
    return "That is done."


def commands(step: int) -> list[str]:
    """The commands of a step's block."""
    section = re.split(r"^## \d+\. .*$", TEXT, flags=re.MULTILINE)[step]
    found = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert found is not None, step
    return found[1].splitlines()


def write(page: Page, place: int) -> None:
    """Write one of the tutorial's messages, and send it."""
    page.locator("#composer-text").fill(MESSAGES[place])
    page.keyboard.press("Enter")


def connect(page: Page, url: str) -> None:
    """Step 3: connect a model, and see its name at the top of the page."""
    page.get_by_role("button", name="Connect a model").last.click()
    page.get_by_label("Server address (…/v1)").fill(url)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator(".role-form [role=status]")).to_contain_text("answered")
    page.get_by_role("region", name="Models").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog", name="Settings")).to_contain_text(
        "uses this model from the next message on"
    )
    page.keyboard.press("Escape")


def _settled(page: Page) -> None:
    """Wait until the root is done with what was written."""
    expect(page.locator("[data-role=agent-state]")).to_have_text("done")


def in_a_folder(page: Page, model: TutorialModel, folder: Path, picture: Pictured) -> None:
    """Steps 4 to 8, in a session that works in the newcomer's folder."""
    _tidied(page, folder, picture)
    _three_children(page, model, picture)
    _plan(page, folder, picture)
    _yes_and_no(page, folder, picture)


def _tidied(page: Page, folder: Path, picture: Pictured) -> None:
    people = folder / "people.csv"
    write(page, TIDY)
    expect(page.locator(".dialogue")).to_contain_text("That is done.")
    assert (folder / "notes.md").exists(), "new files are there at once"
    assert len(people.read_text().splitlines()) == 4, "what was there before waits"

    page.get_by_role("button", name="Review", exact=True).click()
    dialog = page.get_by_role("dialog", name="Changes to review")
    expect(dialog.locator("tr.removed .text")).to_have_text(["Ada,London"])
    picture(page, "tutorial-review.png")
    dialog.get_by_role("button", name="Apply all").click()
    dialog.get_by_role("button", name="Yes, apply").click()
    expect(dialog).to_contain_text("1 change is in your directory now.")
    assert len(people.read_text().splitlines()) == 3
    page.keyboard.press("Escape")


def _three_children(page: Page, model: TutorialModel, picture: Pictured) -> None:
    write(page, THREE)
    for name, gate in model.gates.items():
        expect(page.locator(f'[data-path="/{name}"] > .node')).to_contain_text("Model writing")
        assert gate.wait()
    page.locator('[data-path="/planes"] > .node').click()
    expect(page.get_by_label("Message /planes")).to_be_visible()
    page.locator('[data-path="/"] > .node').first.click()
    picture(page, "tutorial-children.png")
    for gate in model.gates.values():
        gate.release()
    _settled(page)
    page.get_by_role("tab", name="Timeline").click()
    expect(page.locator("#inspector-panel")).to_contain_text("in total")


def _plan(page: Page, folder: Path, picture: Pictured) -> None:
    page.locator("[data-role=way]").select_option(label="Run the plan as written")
    page.get_by_label("Show me the plan first").check()
    write(page, PLANNED)
    start = page.get_by_role("button", name="Start", exact=True)
    expect(start).to_be_in_viewport(ratio=1)
    assert not (folder / "summary.md").exists(), "nothing has run yet"
    picture(page, "tutorial-plan.png")
    start.click()
    _settled(page)
    assert (folder / "summary.md").read_text().startswith("Rows: 2\nCities:\nLondon\n")


def _yes_and_no(page: Page, folder: Path, picture: Pictured) -> None:
    page.locator("[data-role=way]").select_option(label="Chat")
    write(page, DELETE)
    page.get_by_role("button", name="Review", exact=True).click()
    dialog = page.get_by_role("dialog", name="Changes to review")
    dialog.get_by_role("button", name="Discard all").click()
    dialog.get_by_role("button", name="Yes, discard").click()
    expect(dialog).to_contain_text("1 change is discarded.")
    assert (folder / "people.csv").exists()
    page.keyboard.press("Escape")

    write(page, READ)
    question = page.get_by_role("region", name="Approvals")
    expect(question).to_contain_text("https://example.org/")
    expect(question).to_contain_text("Asked by Root agent")
    picture(page, "tutorial-question.png")
    question.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".dialogue")).to_contain_text("You did not allow the host")
    _settled(page)


def first_task(page: Page) -> None:
    """Step 2, with a model that is connected: it is offered other tasks, so the suggestion is written."""
    expect(page.locator(".suggestion")).to_have_count(3)
    expect(page.get_by_role("button", name=SQUARES)).to_have_count(0)
    page.locator("#composer-text").fill(SQUARES)
    page.keyboard.press("Enter")
    expect(page.locator(".dialogue")).to_contain_text("100")
    _settled(page)


def taken_back(page: Page, workspace: Path) -> None:
    """Step 8: the session of step 2 goes on, and its files are restored; a message is written again, in a branch."""
    page.get_by_role("tab", name="Sessions").click()
    page.locator(".session-open").filter(has_text=SQUARES[:20]).click()
    expect(page.locator(".dialogue")).to_contain_text("100")
    write(page, TWENTY)
    expect(page.locator(".dialogue")).to_contain_text("400")
    _settled(page)
    assert "21" in (workspace / "squares.py").read_text()

    page.get_by_role("tab", name="Files").click()
    page.get_by_label("By time of change").check()
    restore = page.locator(".workspace-restore").last
    restore.click()
    restore.click()
    expect(page.locator(".workspace")).to_contain_text("restored by you")
    assert "11" in (workspace / "squares.py").read_text()

    page.locator(".entry[data-kind=say]").last.get_by_role("button", name="Edit", exact=True).click()
    page.locator("#composer-text").fill(f"{MESSAGES[TWENTY]} Please.")
    page.keyboard.press("Enter")
    expect(page.locator(".dialogue")).to_contain_text("2 of 2")
    _settled(page)


def remembered(page: Page) -> None:
    """Step 9: what was preferred is kept, and shown."""
    write(page, PREFER)
    _settled(page)
    page.get_by_role("button", name="Memory", exact=True).click()
    dialog = page.get_by_role("dialog", name="Memory")
    expect(dialog).to_contain_text(MESSAGES[PREFER])


def serving_in_folder(product: Product, home: Path) -> AbstractContextManager[Server]:
    """Step 4: the folder is made, and the server is started with it, as the tutorial's commands say."""
    lines = commands(4)
    made = [line for line in lines if line.startswith(("mkdir", "printf"))]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-ec", "\n".join(made)], env=environment, check=True)

    [serve] = [line for line in lines if line.startswith("iact serve")]
    words = serve.replace("~", str(home)).split()[1:]
    return product.serving(*[word for word in words if word != "--open"])
