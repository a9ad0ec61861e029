"""Children in the running product: the first of several is waited for, and its question is not taken for a result."""

from __future__ import annotations

from iact.core.journal import read_journal
from iact.core.records.calls import Select
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.endpoint import Gate, Reply


def test_the_question_of_one_child_comes_while_another_works(stage: Stage) -> None:
    slow = Gate()
    endpoint = stage.endpoint(
        {
            "/": [
                "```CALL_ASYNC writer\nWrite it.\n```\n```CALL_ASYNC painter\nPaint it.\n```\n```WAIT any\n```",
                "```CALL painter\nGreen.\n```\n```WAIT any writer\n```",
                "Both are done.",
            ],
            "/writer": [Reply("Written.", gates={0: slow})],
            "/painter": ["Which colour?", "Painted green."],
        },
        by_turn=True,
    )
    product = stage.product(endpoint, **NO_MODULES)
    with product.started("run", "Write and paint it.") as process:
        # The painter is answered, and has replied again, before the writer says a word.
        assert endpoint.wait_for(2, agent="/painter")
        slow.release()
        assert process.stdout is not None
        assert process.stdout.read() == "Both are done.\n"
        assert process.wait(300) == 0

    first, *_ = [request.last for request in endpoint.of("/")][1:]
    assert "Your child /painter asks you, kept as $painter_1:\n```\nWhich colour?\n```" in first
    assert "still at work: `/writer`." in first

    (journal,) = product.journals()
    records = read_journal(journal).records
    bodies = {record.n: record.body for record in records}
    taken = [[bodies[n] for n in one.content.took] for one in records if isinstance(one.content, Select)]
    assert taken == [["Which colour?"], ["Written."]]
    assert "/painter: asks its caller" in product.data.with_name(f"{product.data.name}.stderr").read_text()
