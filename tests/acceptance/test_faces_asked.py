"""Questions to a person reach programs that only know text, and a word in their next message answers them.

Chat completions and Responses through a real `iact serve`, with the `openai` client that declares no tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from iact.core.journal import read_journal
from tests.acceptance.product import Product, kill
from tests.acceptance.test_responses import POLICY, client, serving, sessions
from tests.endpoint import Endpoint

WRITE: Final = "```files.write path=a.txt\nhello\n```"
DONE: Final = "Done with it."


@contextmanager
def asking(folder: Path, *replies: str) -> Iterator[tuple[Product, OpenAI]]:
    """A product whose calls of `files.write` need approval, and a client of it."""
    with Endpoint({"/": [*replies]}) as endpoint:
        product = Product.at(folder, endpoint)
        (folder / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            yield product, client(product, url)
        (session,) = sessions(product)
        assert product.run("replay", "--verify", session).status == 0


def results(product: Product) -> list[str]:
    (journal,) = product.journals()
    return [one.text("status") for one in read_journal(journal).records if one.kind == "result"]


class Chatting:
    """A chat program: it shows what it is sent, and sends all of it each time."""

    def __init__(self, model: OpenAI, *, streams: bool = False) -> None:
        self.model = model
        self.streams = streams
        self.chat: list[ChatCompletionMessageParam] = []

    def say(self, text: str) -> str:
        self.chat.append({"role": "user", "content": text})
        answer, finish = self._streamed() if self.streams else self._whole()
        assert finish == "stop"
        self.chat.append({"role": "assistant", "content": answer})
        return answer

    def _whole(self) -> tuple[str, str | None]:
        choice = self.model.chat.completions.create(model="iact", messages=self.chat).choices[0]
        assert choice.message.tool_calls is None
        return choice.message.content or "", choice.finish_reason

    def _streamed(self) -> tuple[str, str | None]:
        pieces, finish = [], None
        for chunk in self.model.chat.completions.create(model="iact", messages=self.chat, stream=True):
            pieces.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
        return "".join(pieces), finish


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("word", "result"), [("allow", "ok"), ("Ja.", "ok"), ("deny", "incomplete"), ("nein", "incomplete")]
)
def test_a_word_in_a_chat_answers(tmp_path: Path, word: str, result: str, streams: bool) -> None:
    with asking(tmp_path, f"I write it.\n\n{WRITE}", DONE) as (product, model):
        chat = Chatting(model, streams=streams)
        asked = chat.say("Write it")
        assert asked.startswith("I write it.\n\n```text\n/ asks to run files.write")
        assert 'Answer "allow" or "deny"' in asked
        assert chat.say(word) == DONE
        assert results(product) == [result]


def test_nothing_else_in_a_chat_answers(tmp_path: Path) -> None:
    with asking(tmp_path, WRITE, DONE, "It was said later.") as (product, model):
        chat = Chatting(model)
        chat.say("Write it")
        again = chat.say("allow it, but only if you are sure")
        assert "/ asks to run files.write" in again
        assert "Your message is read when this is answered." in again
        assert results(product) == []
        answer = chat.say("yes")
        assert answer.startswith(DONE)
        assert results(product) == ["ok"]


def test_a_word_in_a_chat_answers_after_the_server_was_killed(tmp_path: Path) -> None:
    """The question's id, which the chat holds, says whose question it is."""
    with Endpoint({"/": [WRITE, WRITE, DONE]}, crashes=True) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with product.started("serve", "--faces", "0") as process:
            assert process.stdout is not None
            process.stdout.readline()
            chat = Chatting(client(product, process.stdout.readline().split()[-1]))
            chat.say("Write it")
            kill(process)
        with serving(product) as url:
            chat.model = client(product, url)
            answer = chat.say("allow")
            # A call that was asked about before the server ended is asked about again, if its agent makes it again.
            while "asks to run files.write" in answer:
                answer = chat.say("allow")
        assert len(sessions(product)) == 1
        assert (results(product)[-1], answer) == ("ok", DONE)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_word_after_a_response_answers(tmp_path: Path, streams: bool) -> None:
    with asking(tmp_path, WRITE, DONE) as (product, model):
        if streams:
            *_, last = model.responses.create(model="iact", input="Write it", stream=True)
            assert last.type == "response.completed"
            asked = last.response
        else:
            asked = model.responses.create(model="iact", input="Write it")
        (item,) = asked.output
        assert item.type == "message"
        assert "/ asks to run files.write" in asked.output_text
        assert model.responses.retrieve(asked.id).output == asked.output
        done = model.responses.create(model="iact", input="allow", previous_response_id=asked.id)
        assert done.output_text == DONE
        assert results(product) == ["ok"]


LETTER: Final = """```PLAN letter
goal: Write a letter and have it signed
steps:
  - {id: draft, call: files.write, params: {path: letter.txt, content: Dear all}, contract: {by: person}}
  - {id: sign, by: person, task: Sign letter.txt., after: [draft]}
  - {id: sent, call: files.write, params: {path: sent.txt}, refs: {content: {step: sign}}}
```"""
KINDER: Final = (
    '{"action": "replace", "failure": "stiff", "cause": "the greeting", "confidence": 0.9, "steps": [{"id": "kinder", '
    '"call": "files.write", "params": {"path": "letter.txt", "content": "My dears"}}]}'
)


def test_a_step_that_is_the_persons_is_done_and_a_result_accepted_in_a_chat(tmp_path: Path) -> None:
    """Words in a chat are what came of the step, or what should be changed; a plain yes accepts."""
    with Endpoint({"/": [LETTER, DONE], "*": [KINDER]}) as endpoint:
        product = Product.at(tmp_path, endpoint)
        with serving(product) as url:
            chat = Chatting(client(product, url))
            asked = chat.say("Have the letter signed")
            assert 'Answer "yes" to accept it, "no" to refuse it, or with what should be changed.' in asked
            assert 'Answer "yes" to accept it' in chat.say("Less stiff, please")
            asked = chat.say("yes")
            assert "Sign letter.txt." in asked
            assert "Answer with what came of it" in asked
            assert chat.say("on 3 May") == DONE
        (journal,) = product.journals()
    files = journal.parent / "workspace"
    assert (files / "letter.txt").read_text() == "My dears\n"
    assert (files / "sent.txt").read_text() == "on 3 May"


def test_an_old_yes_allows_nothing_new(tmp_path: Path) -> None:
    """A word answers what its client was shown. What is asked since then waits for an answer of its own."""
    other = "```files.write path=b.txt\nother\n```"
    with asking(tmp_path, WRITE, other, DONE) as (product, model):
        first = model.responses.create(model="iact", input="Write it")
        second = model.responses.create(model="iact", input="allow", previous_response_id=first.id)
        assert "b.txt" in second.output_text
        # The same word again, as a client sends it that did not read the answer to the first one.
        third = model.responses.create(model="iact", input="allow", previous_response_id=first.id)
        assert results(product) == ["ok"]
        assert (third.id, third.output) == (second.id, second.output)
        done = model.responses.create(model="iact", input="deny", previous_response_id=second.id)
        assert DONE in done.output_text
        assert results(product) == ["ok", "incomplete"]


def test_pictures_and_links_of_strangers_stay_text(tmp_path: Path) -> None:
    """A chat program shows Markdown; what is asked about is in a fence that nothing of it ends."""
    body = "![x](http://127.0.0.1/steal)\n`````\n![y](http://127.0.0.1/steal)"
    write = f"``````files.write path=a.md\n{body}\n``````"
    with asking(tmp_path, write, DONE) as (_, model):
        asked = Chatting(model).say("Write it")
        fence = asked.split("text\n", 1)[0]
        assert set(fence) == {"`"}
        inside = asked.split("text\n", 1)[1].split(f"\n{fence}\n", 1)[0]
        assert inside.count("steal") == 2
