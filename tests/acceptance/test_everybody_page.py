"""What an administrator sets for all users, on a real server with accounts: a module that all can call, with a secret
that none of them can read; the policy; and its entries in the audit. Tested again after the server was killed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, kill
from tests.acceptance.test_people_page import browsing, more, person, say, signed_in, with_people
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint, Request
from tests.web.browser import Wrongs

VALUE: Final = "everybody's and nobody's 4c1d90"
OWN: Final = "of ada alone, 77ab3f0"
LENT: Final = "lent by ada to all modules, 5e0f"

KEEPER: Final = '''\
import hashlib, os
from ext_modules.sdk import Module

module = Module("{name}", "Knows the key of the team.", keywords=["key"])

@module.function(impact=0, summary="Tell about the key")
def tell() -> str:
    """Tell how long the key is, and, against all sense, the key."""
    key = os.environ.get("TEAM_KEY", "")
    return f"{{len(key)}} characters, {{hashlib.sha256(key.encode()).hexdigest()[:8]}}: {{key}}"
'''
CARD: Final = 'name = "keeper"\nsummary = "Knows the key of the team."\n\n[needs]\nsecrets = ["TEAM_KEY"]\n'


def digest(value: str) -> str:
    return f"{len(value)} characters, {hashlib.sha256(value.encode()).hexdigest()[:8]}"


def answers(request: Request) -> str:
    """Whatever somebody asks for last is done once, and then told."""
    asked = [n for n, (_, content) in enumerate(request.messages) if "Please " in content]
    if not asked or any(role == "assistant" for role, _ in request.messages[asked[-1] :]):
        return "Here it is."
    said = request.messages[asked[-1]][1].rpartition("Please ")[2]
    if said.startswith("write"):
        return f"I write it.\n\n```DEPLOY name=thief secrets=TEAM_KEY\n{KEEPER.format(name='thief')}```"
    name = "thief" if said.startswith("ask the thief") else "keeper"
    return f"I ask.\n\n```{name}.tell\n```"


def audited(product: Product) -> list[tuple[str, str, dict[str, str]]]:
    lines = [json.loads(line) for line in product.run("audit", "--json").stdout.splitlines()]
    return [(one["what"], one["who"], one["about"]) for one in lines]


def ask(page: Page, text: str, replies: int) -> None:
    """Have something done, and wait until it is told. `replies`: how many there are then."""
    say(page, text)
    expect(page.locator(".entry.reply")).to_have_count(replies, timeout=300_000)


def store_own(page: Page, value: str, *, lend: bool) -> Locator:
    """Store a secret of one's own in the open dialog of modules; gives the part of it that is about secrets."""
    part = page.locator("[data-role=own-secrets]")
    before = part.get_by_role("button", name="Remove: TEAM_KEY").count()
    part.locator("[data-role=secret-name]").fill("TEAM_KEY")
    part.locator("[data-role=secret-value]").fill(value)
    part.locator("[data-role=secret-lent]").set_checked(lend)
    part.get_by_role("button", name="Store the secret").click()
    expect(part.get_by_role("button", name="Remove: TEAM_KEY")).to_have_count(before + 1)
    expect(part.locator("[data-role=secret-value]")).to_have_value("")
    return part


def journals(folder: Path) -> str:
    return "".join(one.read_text() for one in sorted(folder.glob("sessions/*/journal.md")))


def new_page(page: Page, server: Server) -> None:
    page.goto("about:blank")
    page.goto(f"http://127.0.0.1:{server.port}/")
    expect(page.get_by_label("Message to the root agent")).to_be_visible()


@pytest.mark.no_prefix_law("several people talk to one model, and nothing orders what they say")
def test_what_an_administrator_sets_all_have_and_nobody_can_read(stage: Stage, tmp_path: Path) -> None:
    with Endpoint(answers) as endpoint:
        _everybody(stage.product(endpoint), endpoint, tmp_path / "keeper")


def _everybody(product: Product, endpoint: Endpoint, source: Path) -> None:
    source.mkdir()
    source.joinpath("module.toml").write_text(CARD, encoding="utf-8")
    source.joinpath("module.py").write_text(KEEPER.format(name="keeper"), encoding="utf-8")
    with_people(product, "ada", "bob")
    wrongs = Wrongs("")
    ids = {one["name"]: one["id"] for one in json.loads(product.run("user", "list", "--json").stdout)}
    hers, his = (product.data / "users" / ids[name] for name in ("ada", "bob"))
    with browsing() as browser:
        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            ada = signed_in(person(browser, wrongs), server, "ada")
            bob = signed_in(person(browser, wrongs), server, "bob")
            ask(bob, "Please write it.", 1)

            # She adds a module, approves it, and stores its secret; on a page that never shows the value again.
            more(ada, "admin-open")
            dialog = ada.locator("[data-role=administration-dialog]")
            ada.locator("[data-role=everybody-source]").fill(str(source))
            ada.get_by_role("button", name="Add for all users").click()
            approve = dialog.get_by_role("button", name="Approve: keeper")
            expect(approve).to_be_visible(timeout=300_000)
            expect(dialog).to_contain_text("receives TEAM_KEY")
            approve.click()
            expect(approve).to_be_hidden()
            ada.locator("[data-role=everybody-secret]").fill("TEAM_KEY")
            ada.locator("[data-role=everybody-value]").fill(VALUE)
            ada.get_by_role("button", name="Store the secret").click()
            expect(dialog.get_by_role("button", name="Remove: TEAM_KEY")).to_be_visible()
            assert VALUE not in ada.content()
            ada.get_by_role("button", name="Close").click()

            # His session, which was open, has it; he can't approve or remove it, nor read the secret, also not with a
            # module of his own that asks for the secret and that he approves.
            ask(bob, "Please ask the keeper.", 2)
            assert f"{digest(VALUE)}: [secret TEAM_KEY]" in journals(his)
            bob.locator("[data-role=modules-open]").click()
            keeper = bob.locator("[data-module=keeper]")
            expect(keeper).to_contain_text("for all users")
            keeper.locator("summary").click()
            expect(keeper.get_by_role("button")).to_have_count(0)
            thief = bob.locator("[data-module=thief]")
            thief.locator("summary").click()
            thief.get_by_role("button", name="Approve thief.tell").click()
            expect(thief).to_contain_text("approved")
            bob.keyboard.press("Escape")
            ask(bob, "Please ask the thief.", 3)
            assert "0 characters" in journals(his)

            # Hers of the same name, which she stores on the page, goes to her own modules alone. His module is not hers.
            ada.locator("[data-role=modules-open]").click()
            expect(ada.locator("[data-module=keeper]")).to_be_visible()
            expect(ada.locator("[data-module=thief]")).to_have_count(0)
            own = store_own(ada, OWN, lend=False)
            ada.keyboard.press("Escape")
            ask(ada, "Please ask the keeper.", 1)
            assert f"{digest(VALUE)}: [secret TEAM_KEY]" in journals(hers)

            # What she lends to the modules of all comes before everybody's, for her alone, until she takes it back.
            ada.locator("[data-role=modules-open]").click()
            store_own(ada, LENT, lend=True)
            ada.keyboard.press("Escape")
            new_page(ada, server)  # a module that runs keeps what it was given
            ask(ada, "Please ask the keeper.", 1)
            assert f"{digest(LENT)}: [secret TEAM_KEY]" in journals(hers)
            ask(bob, "Please ask the keeper.", 4)
            assert digest(LENT) not in journals(his)
            assert OWN not in ada.content()
            assert LENT not in ada.content()
            ada.locator("[data-role=modules-open]").click()
            own.get_by_role("button", name="Remove: TEAM_KEY").last.click()
            expect(own.get_by_role("button", name="Remove: TEAM_KEY")).to_have_count(1)
            for context in browser.contexts:
                context.close()
            kill(server.process)

        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            bob = signed_in(person(browser, wrongs), server, "bob")
            before = journals(his).count(digest(VALUE))
            ask(bob, "Please ask the keeper.", 1)
            assert journals(his).count(digest(VALUE)) > before

            # The policy: what is none is refused; what is one holds for the next session.
            ada = signed_in(person(browser, wrongs), server, "ada")
            more(ada, "admin-open")
            policy = ada.locator("[data-role=policy]")
            policy.fill("[scope.default]\nfunctons = []\n")
            ada.get_by_role("button", name="Change the policy").click()
            expect(ada.locator("[data-role=administration-dialog]")).to_contain_text("is wrong at")
            assert not (product.data / "policy.toml").exists()
            policy.fill('[scope.default]\nfunctions = ["files.*"]\n')
            ada.get_by_role("button", name="Change the policy").click()
            expect(ada.locator("[data-role=administration-dialog]")).to_contain_text("policy.changed")
            new_page(bob, server)
            before = journals(his).count(digest(VALUE))
            ask(bob, "Please ask the keeper.", 1)
            assert journals(his).count(digest(VALUE)) == before
            expect(bob.locator(".entry.reply")).to_contain_text(
                "keeper.tell"
            )  # no action to him: it is out of scope
            for context in browser.contexts:
                context.close()
    wrongs.forgive("401", "404")
    wrongs.forgive_lost_line()
    assert wrongs.found == []

    assert product.run("secret", "list", "--everybody").stdout == "TEAM_KEY\n"
    assert product.run("secret", "list").stdout == ""
    assert product.agree("module", "approve", "keeper", "--everybody").status == 0
    assert product.run("module", "remove", "keeper", "--everybody").status == 0
    assert json.loads(product.run("module", "list", "--everybody", "--json").stdout) == []
    everybody = {"for": "everybody"}
    said = [one for one in audited(product) if one[0].partition(".")[0] in ("module", "secret", "policy")]
    added = {one["module"]: one.get("digest") for _, _, one in said if "digest" in one}
    operator = said[-1][1]
    assert said == [
        ("module.added", "ada", {"module": "keeper", "digest": added["keeper"], **everybody}),
        ("module.approved", "ada", {"module": "keeper", "functions": "tell", **everybody}),
        ("secret.changed", "ada", {"secret": "TEAM_KEY", **everybody}),
        ("module.approved", "bob", {"module": "thief", "functions": "tell"}),
        ("secret.changed", "ada", {"secret": "TEAM_KEY"}),
        ("secret.changed", "ada", {"secret": "TEAM_KEY", "to": "modules of everybody"}),
        ("secret.changed", "ada", {"secret": "TEAM_KEY", "to": "modules of everybody", "removed": "yes"}),
        ("policy.changed", "ada", {}),
        ("module.approved", operator, {"module": "keeper", "functions": "tell", **everybody}),
        ("module.removed", operator, {"module": "keeper", **everybody}),
    ]

    # Each value is in one file, which the server alone can read; what was taken back is in none.
    places = {VALUE: [product.data / "shared" / "secrets.json"], OWN: [hers / "secrets.json"], LENT: []}
    for value, files in places.items():
        held = [
            path for path in product.data.rglob("*") if path.is_file() and value.encode() in path.read_bytes()
        ]
        assert held == files
        assert all(one.stat().st_mode & 0o777 == 0o600 for one in held)
        assert not any(value in content for one in endpoint.requests for _, content in one.messages)
