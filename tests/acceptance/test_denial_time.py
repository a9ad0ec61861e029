"""The time of a denial, compared with the time of a lost call of the same function, in the running product.

A user's module in a real container breaks off its answers after some time. A rate limit allows some of its calls and
denies the rest. An agent could measure the time between a decision and its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.core.session.test_gate import distance

CALLS: Final = 40
"""Of each kind."""

FRAIL: Final = '''
import random
import time

from ext_modules.sdk import Module, Result

module = Module("frail", "Breaks off.", keywords=["frail"])


@module.function(impact=1, summary="Breaks off.")
def lose(text: str) -> Result:
    """text: any."""
    time.sleep(random.choice([0.02, 0.12]) * random.uniform(0.5, 1.5))
    return Result("x", data={"long": "x" * 70_000})
'''

POLICY: Final = f"""
[scope.default]
functions = ["*"]
[[scope.default.rate]]
function = "frail.lose"
calls = {CALLS}
per = 86400
"""


def seconds(records: Sequence[Record], *, allowed: bool) -> list[float]:
    """The time from each such decision to its outcome."""
    found: list[float] = []
    for gate in records:
        if gate.kind == "gate" and (gate.fields["allow"] is True) == allowed:
            result = next(
                one
                for one in records[gate.n :]
                if one.kind == "result" and one.fields["action"] == gate.fields["action"]
                and one.fields["turn"] == gate.fields["turn"]
            )  # fmt: skip
            assert result.text("status") == "incomplete", result
            found.append((_time(result) - _time(gate)).total_seconds())
    return found


def _time(record: Record) -> datetime:
    return datetime.fromisoformat(record.at)


def test_time_does_not_tell_a_denial_from_a_loss(stage: Stage) -> None:
    """Two-sample Kolmogorov-Smirnov at the 1 % level, and a call that was never made is told apart at once."""
    calls = "\n".join(f"```frail.lose text=n{number}\n```" for number in range(2 * CALLS))
    product = stage.product(stage.endpoint({"/": [f"I try.\n\n{calls}", "Done."]}))
    (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
    folder = stage.folder / "frail"
    folder.mkdir()
    (folder / "module.py").write_text(FRAIL, encoding="utf-8")
    card = 'name = "frail"\nsummary = "Breaks off."\nversion = "1"\n'
    (folder / "module.toml").write_text(card, encoding="utf-8")
    assert product.run("module", "add", str(folder)).status == 0
    records = product.ask("Try it.").records
    lost, denied = seconds(records, allowed=True), seconds(records, allowed=False)
    assert (len(lost), len(denied)) == (CALLS, CALLS)
    level = 1.63 * (2 / CALLS) ** 0.5
    assert distance(lost, denied) < level
    assert distance(lost, [0.003] * CALLS) > level, "the test can fail"
