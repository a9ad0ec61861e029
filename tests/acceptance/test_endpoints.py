"""Unusual texts from endpoints: half characters, and drafts of a model that leaves its thoughts in its reply."""

from __future__ import annotations

from iact.core.journal import read_journal
from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.endpoint import Reply

DRAFT = """<think>
I could remember something wrong:

```VAR draft
wrong
```

No, that is not it.
</think>
```VAR note
right
```
"""


def test_half_a_character_ends_no_turn(stage: Stage) -> None:
    """JSON can hold it. Two halves that come in two pieces are the character."""
    half = Reply("Fine \ud83d\ude00, and \ud83d.", chunk=1)
    product = stage.product(stage.endpoint({"/": [half, "And on."]}), **NO_MODULES)
    first = product.ask("Go.")
    assert (first.status, first.reply) == ("done", "Fine \U0001f600, and \ufffd.")
    assert product.ask("On.", session=first.session).reply == "And on."


def test_a_draft_in_reasoning_neither_acts_nor_cuts_the_reply(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [DRAFT, Reply("<think>Enough.</think>Done: $note.", chunk=3)]})
    answer = stage.product(endpoint, **NO_MODULES).ask("Go.")
    assert (answer.status, answer.reply.strip()) == ("done", "Done: $note.")
    turn, reply = (one for one in answer.records if one.kind in ("turn", "reply"))
    assert [
        one["function"] for one in (record.fields for record in answer.records) if "function" in one
    ] == []
    assert "wrong" not in turn.body
    assert "wrong" in str(turn.fields["reasoning"])
    assert reply.fields["reasoning"] == "Enough."
    tree = replay(answer.journal, verify=True).tree
    assert [name for name, _ in tree.agents["/"].table.items()] == ["note"]
    assert all("wrong" not in message for message in endpoint.requests[1].messages[-2][1:])


THOUGHT = "I could remember something wrong:\n\n```VAR draft\nwrong\n```\n"
MARKED = [
    f"<think>Hm. <think>{THOUGHT}</think>\n{THOUGHT}</think>\n",
    f"<reasoning>{THOUGHT}</reasoning>",
    f"[THINK]{THOUGHT}[/THINK]",
    f"<seed:think>{THOUGHT}</seed:think>",
    f"◁think▷{THOUGHT}◁/think▷",
    f"<|channel>thought\n{THOUGHT}<channel|>",
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>",
]


def test_no_draft_acts_whatever_marks_it_and_however_it_is_cut(stage: Stage) -> None:
    replies = [Reply(f"{thought}```VAR note_{at}\nright\n```", chunk=1) for at, thought in enumerate(MARKED)]
    between = Reply(f"Done.\n<think>\n{THOUGHT}", chunk=1)
    endpoint = stage.endpoint({"/": [*replies, between]})
    answer = stage.product(endpoint, **NO_MODULES).ask("Go.")
    assert (answer.status, answer.reply.strip()) == ("done", "Done.")
    tree = replay(answer.journal, verify=True).tree
    assert [name for name, _ in tree.agents["/"].table.items()] == [f"note_{at}" for at in range(len(MARKED))]
    reasoned = [record for record in answer.records if record.kind in ("turn", "reply")]
    assert all(THOUGHT.strip() in str(record.fields["reasoning"]) for record in reasoned)
    assert "VAR draft" not in str(endpoint.requests[-1].messages)


def test_a_reply_of_reasoning_alone_is_asked_for_once_more(stage: Stage) -> None:
    alone = [
        Reply(f"<think>\n{THOUGHT}", chunk=1),
        Reply("", reasoning=THOUGHT),
        Reply(f"<think>{THOUGHT}</think>\n"),
    ]
    replies = [one for thought in alone for one in (thought, "```VAR note\nright\n```")]
    endpoint = stage.endpoint({"/": [*replies, "Done."]})
    answer = stage.product(endpoint, **NO_MODULES).ask("Go.")

    assert (answer.status, answer.reply) == ("done", "Done.")
    thought = [record for record in answer.records if record.fields.get("held") == "thoughts"]
    assert [record.body.strip() for record in thought] == ["", "", ""]
    assert all(THOUGHT.strip() in str(record.fields["reasoning"]) for record in thought)
    tree = replay(answer.journal, verify=True).tree
    assert [name for name, _ in tree.agents["/"].table.items()] == ["note"]

    asked = [request.last for request in endpoint.requests]
    told = "You only thought; write your answer or actions now."
    assert [told in text for text in asked] == [False, True, False, True, False, True, False]
    assert "VAR draft" not in str(endpoint.requests[-1].messages)
    assert all(content.strip() for request in endpoint.requests for _, content in request.messages)


def test_reasoning_alone_twice_fails_and_says_so(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [f"<think>{THOUGHT}", f"[THINK]{THOUGHT}[/THINK]", "Here I am."]})
    product = stage.product(endpoint, **NO_MODULES)
    ran = product.run("run", "--json", "Go.")
    answer = ran.answer()
    assert answer.status == "failed"
    assert "sent only its reasoning, and no reply" in answer.reply
    assert product.ask("Well?", session=answer.session).reply == "Here I am."
    replay(answer.journal, verify=True)


def test_reasoning_of_an_endpoint_that_tells_it_apart_is_kept_for_people(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [Reply("Four.", reasoning="Two and two.")]})
    answer = stage.product(endpoint, **NO_MODULES).ask("2 + 2?")
    assert read_journal(answer.journal).records[-2].fields["reasoning"] == "Two and two."


def test_a_reply_that_outgrows_the_window_ends_no_session(stage: Stage) -> None:
    """Nor does a message. Both stay whole in the journal, and can be read piece by piece."""
    long = "\n".join(f"Line {number} of a very long answer." for number in range(1900))
    endpoint = stage.endpoint(
        {"/": [long, "Fine.", "```SHOW $reply_1 lines=1899-1900\n```", "Read.", "Over."]}
    )
    product = stage.product(endpoint, **NO_MODULES, IACT_CONTEXT="8192")
    first = product.ask("Tell me all.")
    assert first.reply == long
    session = first.session
    assert product.ask("And in short?", session=session).reply == "Fine."
    assert product.ask("How did it end?", session=session).reply == "Read."
    assert "Line 1899 of a very long answer." in endpoint.requests[-1].last
    again = product.ask("\n".join(f"Word {number}." for number in range(9000)), session=session)
    assert again.reply == "Over."
    assert sum(one.body.count("Line 1500 of") for one in again.records) == 1
    replay(again.journal, verify=True)


def test_a_role_has_its_own_temperature(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Done.", "Again."]})
    product = stage.product(endpoint, **NO_MODULES)
    first = product.ask("Go.")
    assert "temperature" not in endpoint.requests[0].body, "the endpoint's own"
    (product.data / "iact.toml").write_text("[models.smart]\ntemperature = 0\n", encoding="utf-8")
    product.ask("Again.", session=first.session)
    assert endpoint.requests[1].body["temperature"] == 0
