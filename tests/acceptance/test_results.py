"""What comes back is what happened: results, files and values as a model meets them, with real containers."""

from __future__ import annotations

import re

from tests.acceptance.conftest import Stage
from tests.endpoint import Request

NOTICE = re.compile(
    r"\[… lines ([0-9,]+)–([0-9,]+) of ([0-9,]+) are left out: `(SHOW run_1 lines=(\d+)-(\d+))` …\]"
)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_a_long_result_is_cut_once_and_read_on_as_it_says(stage: Stage) -> None:
    """Four results are too long for one turn together. Each is cut again, and each notice counts the whole result."""
    many = (
        '```shell.run\nfor n in $(seq 1 1000); do echo "line $n of a thousand, with some words"; done\n```\n'
    )
    seen: list[str] = []

    def answer(request: Request) -> str:
        seen.append(request.last)
        if request.turn == 0:
            return many * 4
        if request.turn == 1:
            found = NOTICE.search(request.last)
            assert found is not None
            return f"```{found[4]}\n```"
        return "Read."

    stage.product(stage.endpoint(answer), IACT_CONTEXT="16384").ask("Print it.")

    notices = NOTICE.findall(seen[1])
    assert len(notices) == 1
    assert seen[1].count("of 1,000 are left out") == 4
    first, last = number(notices[0][0]), number(notices[0][1])
    assert f"line {first - 1} of a thousand, with some words\n[…" in seen[1]
    assert f"…]\nline {last + 1} of a thousand, with some words\n" in seen[1]
    assert "Result of `SHOW run_1 lines=" in seen[2]
    shown = re.findall(r"^line (\d+) of a thousand", seen[2], re.MULTILINE)
    assert shown == [str(one) for one in range(int(notices[0][4]), int(notices[0][5]) + 1)]
    assert int(notices[0][4]) == first


def test_what_the_window_bears_is_shown_whole(stage: Stage) -> None:
    """A result of 40,000 characters in a window of 128,000 tokens."""
    script = 'for n in $(seq 1 800); do echo "line $n of eight hundred, all of them with some words"; done'
    endpoint = stage.endpoint({"/": [f"```shell.run\n{script}\n```", "Done."]})
    stage.product(endpoint, IACT_CONTEXT="128000").ask("Print it.")
    printed = endpoint.of("/")[1].last
    assert len(printed) > 40_000
    assert all(f"line {one} of eight hundred" in printed for one in range(1, 801))
    assert "left out" not in printed


def test_an_upload_is_a_file_and_a_variable_and_a_small_value_stands_in_the_message(stage: Stage) -> None:
    endpoint = stage.endpoint({
        "/": [
            '```python.run\nimport pandas as pd\nimport matplotlib.pyplot as plt\ntable = pd.read_csv("orders.csv")\n'
            "table.plot()\nprint(table.amount.sum())\n```\n",
            "```VAR spec\nCount the orders over 10.\nSay the number only.\n```\n\n```CALL counter\nDo $spec with $orders.\n```",
            "One, as ![it]($figure_1) shows.",
        ],
        "/counter": ["1"],
    })  # fmt: skip
    product = stage.product(endpoint)
    orders = product.data.parent / "orders.csv"
    orders.write_text("id,amount\n1,9\n2,33\n", encoding="utf-8")

    answer = product.ask("How many are large?", "--file", str(orders))
    assert answer.reply == "One, as ![it]($figure_1) shows."

    first, second, _ = (request.last for request in endpoint.of("/"))
    assert "orders.csv: file /workspace/orders.csv and variable $orders" in first
    assert "$orders:\n```\nid,amount\n1,9\n2,33\n```" in first
    assert "\n42\n" in second
    assert "It also brought $figure_1 (image/png, " in second

    (task,) = (request.last for request in endpoint.of("/counter"))
    assert "$spec:\n```\nCount the orders over 10.\nSay the number only.\n```" in task
    assert "$orders:\n```\nid,amount\n1,9\n2,33\n```" in task
    assert task.index("Say the number only.") < task.index("Do $spec with $orders.")


def test_a_written_file_ends_as_a_text_file_does_and_a_short_outcome_is_no_variable(stage: Stage) -> None:
    endpoint = stage.endpoint({
        "/": [
            "```files.write path=a.txt\none\ntwo\n```\n\n```files.write path=b.txt newline=false\none\n```\n\n"
            "```shell.run\nod -c a.txt b.txt | head -n 2; wc -c a.txt b.txt\n```\n\n```SHOW run_1\n```",
            "```files.read path=missing.txt\n```",
            "Done.",
        ],
    })  # fmt: skip
    stage.product(endpoint).ask("Write it.")

    _, written, refused = (request.last for request in endpoint.of("/"))
    assert "Created a.txt, 8 bytes." in written
    assert "$write_" not in written
    assert "8 a.txt" in written
    assert "3 b.txt" in written
    assert "Result of `SHOW run_1`" in written, "a guessed name of a later result still works"
    assert "missing.txt" in refused
    assert "Traceback" not in refused
    assert "ext_modules" not in refused
