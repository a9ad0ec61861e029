"""The gate inside the tree: manifests that nobody approved, rates, lockdown, and denials that look like failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.gate.delay import Delays
from iact.core.modules.approval import Approvals
from iact.core.ports import ChatMessage
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, FakeHost, ScriptedModel, TickingClock, World, replies, runtime
from tests.core.session.test_clearance import clearances, question
from tests.rounds import rounds

ROUNDS = rounds(4)
SEND = "```mail.send to=bob\nHello\n```"


def gates(records: Sequence[Record]) -> list[tuple[object, str, object]]:
    return [
        (one.fields["allow"], one.text("by"), one.fields["impact"]) for one in records if one.kind == "gate"
    ]


# --- manifests ----------------------------------------------------------------------------------------


def send(data: Path, approvals: Approvals | None, *, intent: int, digest: str = "1" * 64) -> list[Record]:
    """One call of a function of the user's module, which declares impact 2 and has egress."""

    async def main() -> Path:
        authorities = Authorities(approvals=approvals)
        host = FakeHost(more=True, digest=digest)
        async with runtime(
            data, replies({"/": [SEND, "Done."]}), host=host, authorities=authorities
        ) as opened:
            session = await opened.open(intent=intent)
            await session.ask("Go")
            return session.journal

    return list(replay(asyncio.run(main()), verify=True).records)


def test_a_manifest_that_nobody_approved_is_not_understood(tmp_path: Path) -> None:
    """It runs contained, whatever it asks for; so the worst that it can do is what a scratch workspace loses."""
    assert gates(send(tmp_path / "0", None, intent=0)) == [(False, "impact", 1)]
    assert gates(send(tmp_path / "1", None, intent=1)) == [(True, "impact", 1)]


def test_an_approval_makes_what_is_declared_count_and_is_bound_to_the_digest(tmp_path: Path) -> None:
    approvals = Approvals.load(tmp_path / "approvals.json")
    approvals.approve("mail", "1" * 64, ["send"])
    assert gates(send(tmp_path / "a", approvals, intent=1)) == [(False, "impact", 2)]
    assert gates(send(tmp_path / "b", approvals, intent=1, digest="2" * 64)) == [(True, "impact", 1)]


# --- rates and lockdown -------------------------------------------------------------------------------

RATED = '[scope.default]\nfunctions = ["*"]\n[[scope.default.rate]]\nfunction = "t.*"\ncalls = 2\nper = 60\n'
FOUR = "\n".join(f"```t.write\n{text}\n```" for text in "abcd")


def test_a_rate_is_kept_over_calls_and_restarts_and_refills_with_time(tmp_path: Path) -> None:
    world, script = (
        World(),
        {"/": [FOUR, "Done.", "```t.write\ne\n```", "Done.", "```t.write\nf\n```", "Done."]},
    )

    async def main() -> Path:
        clock = TickingClock()
        async with runtime(tmp_path, replies(script), world=world, policy=RATED, clock=clock) as opened:
            session = await opened.open()
            await session.ask("Go")
            name = session.id
        later = TickingClock()
        async with runtime(tmp_path, replies(script), world=world, policy=RATED, clock=later) as opened:
            session = await opened.open(name)
            await session.ask("Again")
            later.advance(31)
            await session.ask("Later")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    verdicts = [(allow, by) for allow, by, _ in gates(records)]
    assert verdicts == [(True, "impact")] * 2 + [(False, "rate")] * 3 + [(True, "impact")]
    assert [text for _, _, text in world.done] == ["a", "b", "f"]


def test_lockdown_denies_everything_until_it_ends(tmp_path: Path) -> None:
    script = {"/": ["```READ\na\n```", "Done."] * 2}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script)) as opened:
            session = await opened.open()
            await session.lockdown(True)
            await session.ask("Go")
            await session.lockdown(False)
            await session.ask("Again")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [(allow, by) for allow, by, _ in gates(records)] == [(False, "lockdown"), (True, "impact")]


def test_a_changed_policy_holds_from_the_next_opening_on(tmp_path: Path) -> None:
    script = {"/": ["```t.write\na\n```", "Done.", "```t.write\nb\n```", "Done."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script)) as opened:
            session = await opened.open()
            await session.ask("Go")
            name = session.id
        async with runtime(tmp_path, replies(script), policy="lockdown = true") as opened:
            session = await opened.open(name)
            await session.ask("Again")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [(allow, by) for allow, by, _ in gates(records)] == [(True, "impact"), (False, "lockdown")]
    assert [one.text("op") for one in records if one.kind == "control"] == ["policy"]


def test_a_function_outside_the_scope_does_not_exist(tmp_path: Path) -> None:
    """It is not documented, and its name is a code block like any other."""
    policy = '[scope.office]\nfunctions = ["t.read"]'
    model = ScriptedModel(replies({"/": ["```t.read\na\n```\n```t.write\nb\n```", "Done."]}))

    async def main() -> Path:
        script = replies({})
        async with runtime(tmp_path, script, model=model, policy=policy, scope="office") as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert gates(records) == [(True, "impact", 0)]
    assert "`t.write`" not in model.asked[0].newest
    assert "There is no function `t.write`" in model.asked[1].newest


def test_a_reader_may_fetch_and_its_caller_may_not(tmp_path: Path) -> None:
    """The cheapest defence of a tree: what brings in strange content can have no effect."""
    policy = '[scope.default]\nfunctions = ["*"]\nreaders = ["web.*"]'
    script = {
        "/": ["```web.fetch\npage\n```\n```CALL reader intent=0\nRead it.\n```", "Done."],
        "/reader": ["```web.fetch\npage\n```\n```t.write\nx\n```", "It says: page"],
    }

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), host=FakeHost(more=True), policy=policy) as opened:
            session = await opened.open(intent=2)
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    found = [(one.agent, one.fields["allow"], one.text("by")) for one in records if one.kind == "gate"]
    assert found == [
        ("/", False, "provenance"), ("/reader", True, "impact"), ("/reader", False, "impact"),
    ]  # fmt: skip


# --- a denial is like a failure -----------------------------------------------------------------------


class Denied:
    """How a call comes to be denied: a policy, the session's intent, and whether questions are answered with no, or
    `expires`: never answered."""

    def __init__(self, policy: str, intent: int, *, asks: bool = False, expires: bool = False) -> None:
        self.policy, self.intent, self.asks, self.expires = policy, intent, asks, expires


WAYS = {
    "intent": Denied("", 0),
    "cap": Denied('[scope.default]\nfunctions = ["*"]\ncaps = { "t.lose" = 0 }', 2),
    "rate": Denied(
        '[scope.default]\nfunctions = ["*"]\n[[scope.default.rate]]\nfunction = "*"\ncalls = 0\nper = 1', 2
    ),
    "rule": Denied(
        '[scope.default]\nfunctions = ["*"]\n[[scope.default.require]]\nfunction = "*"\nparameter = "text"\n'
        'hosts = ["nowhere.example"]\notherwise = "deny"',
        2,
    ),
    "person": Denied('[scope.default]\nfunctions = ["*"]\nclearance = ["*"]', 2, asks=True),
    "lockdown": Denied("lockdown = true", 2),
}


def contexts(data: Path, turns: Sequence[str], way: Denied | None) -> list[Asked]:
    """The contexts of a root that makes these calls, each of which is lost (no way) or denied."""
    model = ScriptedModel(lambda asked: turns[asked.turn])

    async def main() -> None:
        policy = way.policy if way is not None else ""
        seconds = 0.01 if way is not None and way.expires else 600.0
        async with runtime(
            data,
            replies({}),
            model=model,
            policy=policy,
            clock=TickingClock(),
            authorities=Authorities(seconds=seconds),
        ) as opened:
            session = await opened.open(intent=way.intent if way is not None else 2)
            said = await session.say("Go")
            known = said.n
            while way is not None and way.asks and session.state.root.rest != "done":
                asked = clearances(session.records(known), "ask")
                if asked:
                    known = asked[0].n
                    await session.clear(known, False)
                await asyncio.sleep(0)
            await session.answer(said.n)

    asyncio.run(asyncio.wait_for(main(), 120))
    return model.asked


def read(asked: Sequence[Asked], way: str) -> list[list[ChatMessage]]:
    """What the root read. What its caller granted is told in its first message, up to the task: that is no secret."""
    found = [list(one.messages) for one in asked]
    if way == "intent":
        for messages in found:
            task = messages[1].content.index("Message from the user:")
            messages[1] = ChatMessage("user", messages[1].content[task:])
    return found


def calls(chance: random.Random, count: int) -> list[str]:
    """Turns with `count` random calls of a function that is always lost, in all shapes that a call can have."""
    turns, left = [], count
    while left:
        some = min(left, chance.randint(1, 3))
        left -= some
        blocks = []
        for _ in range(some):
            text = (
                "".join(chance.choice("abc $`{}\"'é\n") for _ in range(chance.randint(1, 30))).strip() or "x"
            )
            fence = "~" * chance.randint(3, 6)
            blocks.append(f"{fence}t.lose\n{text} {chance.random()}\n{fence}")
        turns.append("I try.\n\n" + "\n\n".join(blocks))
    return [*turns, "Done."]


@pytest.mark.parametrize("way", WAYS)
def test_contexts_are_byte_identical_whether_a_call_was_denied_or_lost(tmp_path: Path, way: str) -> None:
    """1,000 random calls over the six ways of a denial."""
    chance = random.Random(sum(way.encode()))
    for number in range(ROUNDS):
        turns = calls(chance, 28)
        lost = contexts(tmp_path / f"lost-{number}", turns, None)
        denied = contexts(tmp_path / f"denied-{number}", turns, WAYS[way])
        assert read(denied, way) == read(lost, way)
        assert "t.lose did not complete." in lost[1].newest


EXPIRED = Denied('[scope.default]\nfunctions = ["*"]\nclearance = ["t.lose"]', 2, expires=True)


@pytest.mark.parametrize("way", [*WAYS, "expired"])
@pytest.mark.parametrize("clothes", [" ", ""])
def test_a_second_attempt_and_what_follows_it_tell_nothing(tmp_path: Path, way: str, clothes: str) -> None:
    """The second attempt fails again, the third is refused, the fourth ends the work: for all kinds alike."""
    turns = [f"```t.lose\n{clothes * turn}it\n```" for turn in range(4)]
    lost = contexts(tmp_path / "lost", turns, None)
    denied = contexts(tmp_path / "denied", turns, {**WAYS, "expired": EXPIRED}[way])
    assert read(denied, way) == read(lost, way)
    assert len(lost) == 4
    assert [one.newest.count("t.lose did not complete.") for one in lost] == [0, 1, 1, 1]


@pytest.mark.parametrize("way", ["intent", "cap"])
@pytest.mark.parametrize("first", ["t.lose", "t.read"])
def test_what_comes_after_does_not_tell_either(tmp_path: Path, way: str, first: str) -> None:
    """Calls of the same module that complete, before and after one that was denied or lost."""
    order = ["t.lose", "t.read"] if first == "t.lose" else ["t.read", "t.lose"]
    turns = [f"```{name}\n{number} of {name}\n```" for number in range(3) for name in order]
    lost = contexts(tmp_path / "lost", [*turns, "Done."], None)
    denied = contexts(tmp_path / "denied", [*turns, "Done."], WAYS[way])
    assert read(denied, way) == read(lost, way)
    assert "2 of t.read" in lost[-1].messages[-1].content + lost[-1].messages[-3].content


def test_a_denial_takes_as_long_as_a_failure(tmp_path: Path) -> None:
    """The clock of the tree is asked to wait; what it is asked for is drawn from failures that were seen."""
    seen = Delays([1.0] * 20)
    clock = TickingClock()
    script = {"/": ["```t.write\na\n```", "Done."]}

    async def main() -> None:
        authorities = Authorities(delays=seen, chance=random.Random(1))
        async with runtime(tmp_path, replies(script), clock=clock, authorities=authorities) as opened:
            session = await opened.open(intent=0)
            await session.ask("Go")

    asyncio.run(main())
    assert len(clock.slept) == 1
    assert 0.95 <= clock.slept[0] <= 1.05


def test_no_statistic_tells_denials_from_failures() -> None:
    """Two-sample Kolmogorov-Smirnov at the 0.1 % level, on a thousand of each, for several shapes of failure."""
    shapes: dict[str, Callable[[random.Random], float]] = {
        "refused": lambda chance: chance.expovariate(200),
        "slow": lambda chance: chance.lognormvariate(0, 0.7),
        "two kinds": lambda chance: chance.choice([0.004, 1.5]) * chance.uniform(0.8, 1.2),
    }
    for seed, (name, draw) in enumerate(shapes.items()):
        chance = random.Random(seed)
        known = Delays()
        for _ in range(512):
            known.record("t.f", draw(chance), lost=True)
        failures = [draw(chance) for _ in range(1000)]
        denials = [known.draw("t.f", chance) for _ in range(1000)]
        # The sampler knows the newest 256 failures, so it can be as far from the truth as a sample of 256 is.
        assert distance(failures, denials) < 1.95 * (1 / 1000 + 1 / 1000 + 1 / 256) ** 0.5, name
    assert distance([0.001] * 1000, failures) > 0.5, "the test can fail"


def distance(first: Sequence[float], second: Sequence[float]) -> float:
    """The greatest difference between two empirical distributions."""
    both = sorted([(one, 0) for one in first] + [(one, 1) for one in second])
    counts, most = [0, 0], 0.0
    for (value, which), (following, _) in pairwise([*both, (float("inf"), 0)]):
        counts[which] += 1
        if value != following:
            most = max(most, abs(counts[0] / len(first) - counts[1] / len(second)))
    return most


def test_a_call_that_did_not_complete_is_made_once_more_refused_twice_and_ends_the_work(
    tmp_path: Path,
) -> None:
    """Scene 13, from inside: the gate is asked for each attempt, and the person sees why."""
    same = "```t.write\na\n```"
    script = {"/": [same, same, same, same, "never"]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script)) as opened:
            session = await opened.open(intent=0)
            reply = await session.ask("Go")
            assert (reply.text("status"), reply.text("bound")) == ("bound", "loop")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    gates = [record for record in records if record.kind == "gate"]
    assert [gate.text("reason") for gate in gates] == ["The call has impact 1, and the intent is 0."] * 2


def test_a_question_that_is_answered_with_no_looks_like_a_failure_too(tmp_path: Path) -> None:
    script = {"/": ["```t.write\na\n```", "Done."]}
    clock = TickingClock()

    async def main() -> Path:
        policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["*"]'
        async with runtime(tmp_path, replies(script), policy=policy, clock=clock) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await session.clear(await question(session), False)
            await session.answer(said.n)
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert next(one.fields for one in records if one.kind == "result")["status"] == "incomplete"
    assert len(clock.slept) == 1


def test_an_intent_between_the_levels_holds_for_children_and_after_a_restart(tmp_path: Path) -> None:
    """A policy makes one kind of write more than others; a task between the two may do one and not the other."""
    policy = (
        '[levels]\nedit = 1.2\npublish = 1.6\n[scope.default]\nfunctions = ["*"]\n'
        '[[scope.default.impact]]\nfunction = "t.write"\nparameter = "text"\nkind = "equals"\n'
        'values = ["final*"]\nimpact = "publish"\n'
    )
    world = World()
    script = {
        "/": [
            "```CALL low intent=1.2\nWrite.\n```\n```t.write\nfinal one\n```\n```t.destroy\nx\n```",
            "Done.",
            "```t.write\nfinal two\n```",
            "Done.",
        ],
        "/low": ["```t.write\ndraft\n```\n```t.write\nfinal zero\n```", "Written."],
    }

    async def main() -> Path:
        model = replies(script)
        async with runtime(tmp_path, model, world=world, policy=policy) as opened:
            session = await opened.open(intent="publish")
            assert (session.intent, dict(session.levels)) == (1.6, {"edit": 1.2, "publish": 1.6})
            await session.ask("Go")
            name = session.id
        async with runtime(tmp_path, model, world=world, policy=policy) as opened:
            session = await opened.open(name)
            assert session.intent == 1.6
            await session.set_intent("edit")
            with pytest.raises(UsageError, match="edit, publish"):
                await session.set_intent("all")
            await session.ask("Again")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert [text for _, _, text in world.done] == ["draft", "final one"]
