"""Delays of an endpoint are shown while they last, counted and recorded; and so are a model's thoughts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from websockets.sync.client import ClientConnection

from iact.core.records.dialogue import Generation, Reply, Turn
from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Answer, acknowledged
from tests.endpoint import HttpError
from tests.endpoint import Reply as Says

LIMITED = Says(error=HttpError(429, "slow down", {"retry-after": "2"}))
LOST_OPENING = "I could remember something mistaken:\n\n```VAR draft\nmistaken\n```\n\nNo.\n</think>\n\n"


def generations(answer: Answer) -> list[Generation]:
    """What the journal tells of each text that a model wrote."""
    contents = [record.content for record in answer.records]
    found = [one.generation for one in contents if isinstance(one, Turn | Reply)]
    return [one for one in found if one is not None]


def test_a_rate_limit_and_retries_are_told_and_recorded(stage: Stage) -> None:
    broken = Says("The answer is 4", cut_after=8)
    endpoint = stage.endpoint({"/": [LIMITED, broken, "Forty-two."]})
    product = stage.product(endpoint, **NO_MODULES)
    ran = product.run("run", "--json", "Go.")
    assert ran.status == 0, ran
    told = [line for line in ran.stderr.splitlines() if line.startswith("/: ")]
    assert re.fullmatch(
        r"/: Rate limited: attempt 2 of 10 in 2 s\. The model endpoint \S+ answers HTTP 429: slow down\.",
        told[0],
    )
    assert told[1].startswith("/: Waiting: attempt 3 of 5 in 1 s. The model endpoint ")
    waits = json.loads(ran.stdout)["waits"]
    assert [(one["agent"], one["state"], one["attempt"], one["of"]) for one in waits] == [
        ("/", "limited", 2, 10),
        ("/", "retrying", 3, 5),
    ]
    (made,) = generations(ran.answer())
    assert [one.state for one in made.waits] == ["limited", "retrying"]
    assert made.waits[0].ms >= 2000
    assert "slow down" in made.waits[0].why
    replay(ran.answer().journal, verify=True)


def test_an_endpoint_that_is_not_there_says_so_at_once(stage: Stage) -> None:
    product = stage.product("http://127.0.0.1:9/v1", **NO_MODULES)
    with product.started("run", "--json", "Go."):
        log = product.data.parent / f"{product.data.name}.stderr"
        product_said = ""
        while "attempt 2 of 10" not in product_said:
            product_said = log.read_text(encoding="utf-8")
    assert "can't be reached" in product_said


@pytest.mark.parametrize("model", ["some-thinking-model", "a-model-of-which-nothing-is-known"])
def test_reasoning_with_a_lost_beginning_never_acts_and_stays_with_its_agent(
    stage: Stage, model: str
) -> None:
    """Some endpoints leave the end of reasoning in the text, and not its beginning: it stood in the prompt."""
    child = Says("Hm, what for?\n</think>\n\nA child.", usage=False)
    endpoint = stage.endpoint(
        {
            "/": [LOST_OPENING + "```CALL child\nWho?\n```\n", "Enough.</think>Done."],
            "/child": [child],
        }
    )
    product = stage.product(endpoint, **NO_MODULES, IACT_MODEL=model)
    answer = product.ask("Go.")
    assert (answer.status, answer.reply.strip()) == ("done", "Done.")
    first, said, last = generations(answer)
    assert "mistaken" in first.reasoning
    assert said.reasoning.strip() == "Hm, what for?"
    assert last.reasoning == "Enough."
    assert said.usage.estimated
    assert said.usage.completion > 4  # of which the reply alone has fewer
    tree = replay(answer.journal, verify=True).tree
    assert "draft" not in [name for name, _ in tree.agents["/"].table.items()]
    sent = "".join(text for request in endpoint.requests for _, text in request.messages)
    assert "mistaken" not in sent
    assert "what for" not in sent


def test_reasoning_with_a_lost_beginning_is_expected_once_it_was_met(stage: Stage) -> None:
    """Of a model whose name tells nothing, the first one teaches it."""
    endpoint = stage.endpoint({"/": ["Hm.\n</think>\nOne.", LOST_OPENING + "Two."]})
    with stage.product(endpoint, **NO_MODULES).serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None})
        for text in ("Go.", "And?"):
            socket.send(json.dumps({"type": "say", "text": text}))
            replies = [frame for frame in until_reply(socket) if frame["type"] == "delta"]
        thought = "".join(str(one["text"]) for one in replies if one.get("thought"))
        said = "".join(str(one["text"]) for one in replies if not one.get("thought"))
    assert "mistaken" in thought
    assert said.strip() == "Two."


def until_reply(socket: ClientConnection) -> Iterator[dict[str, object]]:
    """What comes over a websocket until the root has replied."""
    while True:
        frame = json.loads(socket.recv(timeout=300))
        yield frame
        if frame.get("kind") == "reply":
            return
