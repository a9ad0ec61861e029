"""Natural replies through the product, in both dialects: each does what it meant, or is answered in one line."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES

pytestmark = pytest.mark.parametrize("dialect", ["text", "tools"])


def test_a_session_of_many_forms(stage: Stage, dialect: str) -> None:
    call = json.dumps({"name": "files_write", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}})
    readme = "# Title\n\n```\npip install it\n```\n\nThen use it.\n"
    endpoint = stage.endpoint(
        {
            "/": [
                f"I write it.\n\n<tool_call>\n{call}\n</tool_call>\n<tool_response>\nINVENTED\n</tool_response>",
                "1. I count:\n\n   ```shell.run timeout: 20\n   wc -l a.txt\n   ```\n2. And list:\n\n```bash shell.run\nls\n```",
                "Now I look into it:\n\n```bash\ncat a.txt\n```",
                f"```files.write path=README.md\n{readme}```",
                f"````files.write path: README.md\n{readme}````\n\nAnd then\n\n```shell.run\nhalf a scri",
                'Action: shell.run\nAction Input: {"command": "tail -n 1 README.md"}',
                "It has two lines.\n\n```VAR lines\n2\n```",
            ],
        }
    )
    answer = stage.product(endpoint, IACT_DIALECT=dialect).ask("Count the lines.")

    assert answer.reply == "It has two lines."
    read = [request.last for request in endpoint.requests]
    assert "The end of your message was left out" in read[1]
    assert "2 a.txt" in read[2]
    assert "To run the block, write ```shell.run instead of ```bash." in read[3]
    assert "use a longer fence: ````files.write" in read[4]
    assert "`shell.run` was not run: its block was never closed" in read[5]
    assert "Then use it." in read[6]
    assert "INVENTED" not in "".join(read)
    assert len(read) == 7, "the answer is the reply, whatever is done beside it"


def test_children_answer_in_their_ways(stage: Stage, dialect: str) -> None:
    script = "This lists them:\n\n```python\nprint(1)\n```"
    endpoint = stage.endpoint(
        {
            "/": [
                '<function_calls>\n<invoke name="CALL">\n<parameter name="name">one</parameter>\n'
                '<parameter name="message">Write it.</parameter>\n</invoke>\n</function_calls>',
                '{"name": "CALL", "arguments": {"name": "two", "message": "Check it."}}',
                "Both are done.",
            ],
            "/one": [script],
            "/two": ["> ```CALL x\n> no\n> ```\n\nThat was wrong.", "ANSWER"],
        }
    )
    answer = stage.product(endpoint, IACT_DIALECT=dialect, **NO_MODULES).ask("Go.")

    assert answer.reply == "Both are done."
    assert script in endpoint.of("/")[1].last, "there is no python.run, so code is an answer"
    assert "That was wrong." in endpoint.of("/")[2].last
    assert "A block in a quote is not run: `CALL`." in endpoint.of("/two")[1].last
