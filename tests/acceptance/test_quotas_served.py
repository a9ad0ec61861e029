"""Quotas and budgets at a real server, under fifty calls at once: the endpoint gets exactly the calls that fit; no call
that would fit is refused. Users see the reason on the page, and continue once the quota is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from iact.core.journal import read_journal
from iact.core.records.dialogue import Reply
from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, dial, token_of, until_record, with_people
from tests.acceptance.product import NO_MODULES, Product, acknowledged
from tests.acceptance.test_people_page import browsing, open_session, person, say, signed_in
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint, Request, tokens
from tests.web.browser import Wrongs

FIFTY: Final = 50
FAN: Final = "\n".join(f"```CALL_ASYNC w{number}\nCount.\n```" for number in range(FIFTY)) + "\n```WAIT\n```"
PRICE: Final = 100.0
"""What a million tokens cost here, of whatever kind: a token costs as much as any other, so that sums can be foreseen."""
PRICES: Final = {f"IACT_PRICE_{kind}": str(PRICE) for kind in ("PROMPT", "CACHED", "COMPLETION")}
LIMIT: Final = 40_000
MONEY: Final = LIMIT * PRICE / 1e6

REFUSED: Final = re.compile(
    r"of which ([\d.,]+) is used\. The next model call could (?:take|cost) ([\d.,]+), so"
)


def answers(request: Request) -> str:
    if request.agent != "/" or "Fan out." not in request.last:
        return f"Counted. {'word ' * 100}"
    return FAN


def spent(endpoint: Endpoint) -> int:
    """The tokens that the endpoint says it took, over all that it was asked."""
    return sum(one.prompt_tokens + tokens("x" * one.sent) for one in endpoint.requests)


def refusals(journals: Sequence[Path]) -> list[str]:
    """What agents said that were not let ask."""
    found = [one for journal in journals for one in read_journal(journal).records]
    return [
        one.body
        for one in found
        if isinstance(one.content, Reply) and one.content.bound in ("quota", "money")
    ]


def neither_too_many_nor_too_few(endpoint: Endpoint, refused: Sequence[str], *, money: bool) -> None:
    """What was spent is within the limit, and each call that was refused would have led beyond it."""
    limit, used = (MONEY, spent(endpoint) * PRICE / 1e6) if money else (float(LIMIT), float(spent(endpoint)))
    assert used <= limit
    assert 3 < len(endpoint.requests) < FIFTY, "there was something to be refused, and something was not"
    assert refused
    for one in refused:
        told = REFUSED.search(one)
        assert told is not None, one
        before, most = (float(part.replace(",", "")) for part in told.groups())
        assert before <= used + 0.005, "no more is said to be used than was"
        assert before + most > limit - 0.01, "there was no room for it"


def used_by(product: Product, kind: str, name: str) -> Mapping[str, float]:
    rows = json.loads(product.run("usage", "--json").stdout)["usage"]
    (found,) = (one for one in rows if (one["kind"], one["name"]) == (kind, name))
    return dict(found)


def all_of_it_is_counted(product: Product, endpoint: Endpoint, kind: str, name: str) -> None:
    used = used_by(product, kind, name)
    assert used["calls"] == len(endpoint.requests)
    assert used["tokens"] == spent(endpoint)
    assert used["money"] == pytest.approx(spent(endpoint) * PRICE / 1e6)


def quota(product: Product, *arguments: str) -> None:
    ran = product.run("quota", "set", *arguments)
    assert ran.status == 0, ran


def raised(page: Page) -> None:
    """The owner of the session adds to what it may cost, where it ended."""
    page.locator(".budget-bar").get_by_role("button", name=re.compile("^Add")).last.click()


Bound = tuple[str, tuple[str, ...], tuple[str, ...], bool]
BOUNDS: Final[Mapping[str, Bound]] = {
    "a user's tokens": ("Your quota is 40,000 tokens a month", ("--user", "ada", "--tokens", "40000"), ("--user", "ada", "--tokens", "900000"), False),
    "a user's money": ("Your quota is 4.00 a month", ("--user", "ada", "--money", "4"), ("--user", "ada", "--money", "900"), True),
    "a group's tokens": ("The quota of the group staff is 40,000 tokens", ("--group", "staff", "--tokens", "40000"), ("--group", "staff", "--tokens", "900000"), False),
    "a session's money": ("This session may cost 4.00", (), (), True),
}  # fmt: skip
"""By what is bounded: how its refusal begins, how a quota is set, and then raised, and whether it is of money."""


@pytest.mark.no_prefix_law("what is refused goes on from another place")
@pytest.mark.parametrize("which", BOUNDS)
def test_a_fan_out_of_fifty_ends_at_the_quota_and_goes_on_when_it_is_raised(stage: Stage, which: str) -> None:
    with Endpoint(answers) as endpoint:
        _fans_out(stage.product(endpoint, **NO_MODULES, **PRICES), endpoint, *BOUNDS[which])


def _fans_out(
    product: Product, endpoint: Endpoint, why: str, first: Sequence[str], more: Sequence[str], money: bool
) -> None:
    ids = with_people(product, "root", "ada")
    assert product.run("user", "groups", "ada", "--group", "staff").status == 0
    if first:
        quota(product, *first)
    else:
        with (product.data / "iact.toml").open("a", encoding="utf-8") as file:
            file.write(f"[bounds]\nmoney = {MONEY}\n")
    wrongs = Wrongs("")
    with served(product) as server, browsing() as browser:
        wrongs.origin = f"http://127.0.0.1:{server.port}"
        page = signed_in(person(browser, wrongs), server, "ada")
        say(page, "Fan out.")
        expect(page.locator(".entry.reply").last).to_contain_text(why, timeout=120_000)
        expect(page.locator("[data-role=agent-state]")).to_have_text(
            "budget of money reached" if not first else "quota reached"
        )
        (journal,) = (product.data / "users" / ids["ada"]).glob("sessions/*/journal.md")
        made = len(endpoint.requests)
        refused = refusals([journal])
        neither_too_many_nor_too_few(endpoint, refused, money=money)
        assert len(refused) + made == FIFTY + 2, "each of fifty, and the root twice: asked, or told why not"
        all_of_it_is_counted(product, endpoint, "user", "ada")
        all_of_it_is_counted(product, endpoint, "group", "staff")

        if more:
            quota(product, *more)
            say(page, "Go on.")
        else:
            raised(page)
        expect(page.locator(".entry.reply").last).to_contain_text("Counted.")
        assert len(endpoint.requests) > made
        all_of_it_is_counted(product, endpoint, "user", "ada")
    wrongs.forgive("401")
    assert wrongs.found == []
    replay(journal.parent, verify=True)


@pytest.mark.no_prefix_law("fifty sessions talk to one model")
@pytest.mark.parametrize("which", ["a user's tokens", "a user's money", "a group's tokens"])
def test_fifty_sessions_at_once_end_at_the_quota_and_go_on_when_it_is_raised(
    stage: Stage, which: str
) -> None:
    with Endpoint(answers) as endpoint:
        _sessions(stage.product(endpoint, **NO_MODULES, **PRICES), endpoint, *BOUNDS[which])


def _sessions(
    product: Product, endpoint: Endpoint, why: str, first: Sequence[str], more: Sequence[str], money: bool
) -> None:
    """Of one user; where a group is bounded, half of them of another one of its members."""
    names = ["ada", "bob"] if "--group" in first else ["ada"]
    ids = with_people(product, "root", *names)
    for name in names:
        assert product.run("user", "groups", name, "--group", "staff").status == 0
    quota(product, *first)
    with served(product) as server, browsing() as browser:
        tokens_of = [bearer(token_of(product, name)) for name in names]
        with ExitStack() as stack:
            sockets = [
                stack.enter_context(dial(server, **tokens_of[number % len(names)])) for number in range(FIFTY)
            ]
            for one in sockets:
                acknowledged(one, {"type": "hello", "session": None})
            for number, one in enumerate(sockets):  # nobody waits for anybody
                one.send(json.dumps({"type": "say", "text": f"Count {number}."}))
            ended = [until_record(one, "reply") for one in sockets]
        journals = [*product.data.glob("users/*/sessions/*/journal.md")]
        assert len(journals) == FIFTY
        refused = refusals(journals)
        made = len(endpoint.requests)
        neither_too_many_nor_too_few(endpoint, refused, money=money)
        assert all(one.startswith(why) for one in refused)
        assert len(refused) + made == FIFTY == len(ended)
        if "--group" in first:
            all_of_it_is_counted(product, endpoint, "group", "staff")
            assert sum(used_by(product, "user", name)["calls"] for name in names) == made
        else:
            all_of_it_is_counted(product, endpoint, "user", "ada")

        wrongs = Wrongs(f"http://127.0.0.1:{server.port}")
        refused_of = {name: _refused_of(journals, product.data / "users" / ids[name]) for name in names}
        name = next(
            name for name, theirs in refused_of.items() if theirs
        )  # of a group, who comes too late is chance
        session = refused_of[name][0].parent.name
        page = signed_in(person(browser, wrongs), server, name)
        open_session(page, server, session)
        expect(page.locator(".entry.reply")).to_contain_text(why)
        quota(product, *more)
        say(page, "Go on.")
        expect(page.locator(".entry.reply").last).to_contain_text("Counted.")
        assert len(endpoint.requests) == made + 1
        wrongs.forgive("401")
        assert wrongs.found == []
    for journal in journals:
        replay(journal.parent, verify=True)


def _refused_of(journals: Sequence[Path], folder: Path) -> list[Path]:
    """The journals of a user in which something was refused."""
    return [one for one in journals if one.is_relative_to(folder) and refusals([one])]
