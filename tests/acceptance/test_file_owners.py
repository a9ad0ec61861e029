"""Two children that write the same file, in real containers: who wrote over the other's is told, and who decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage

WRITES: dict[str, str] = {
    "function": "```files.write report.md\nThe second.\n```",
    "program": "```python.run\nfrom pathlib import Path\nPath('report.md').write_text('The second.')\n```",
    "script": "```BASH\necho The second. > report.md\n```",
}


@pytest.mark.parametrize("workspace", ["live", "scratch"])
@pytest.mark.parametrize("how", WRITES)
def test_a_child_that_writes_over_anothers_file_is_told_and_its_caller_decides(
    stage: Stage, tmp_path: Path, workspace: str, how: str
) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                "```CALL first\nSum the report up.\n```",
                "```CALL second\nList the sources.\n```",
                "Done.",
            ],
            "/first": ["```python.run\nopen('report.md', 'w').write('The first.')\n```", "Summed up."],
            "/second": [WRITES[how], "Listed."],
        },
        by_turn=True,
    )
    mine = tmp_path / "mine"
    mine.mkdir()
    options = ["--workspace", str(mine)] if workspace == "live" else []
    product = stage.product(endpoint)
    done = product.ask("Write the report.", *options)

    assert done.reply == "Done."
    folder = mine if workspace == "live" else done.workspace
    assert (folder / "report.md").read_text().strip() == "The second."
    *_, writer = endpoint.of("/second")
    told = "You changed what another agent wrote: report.md (of `/first`). Your caller is told, and decides what stays."
    assert told in writer.last
    *_, decider = endpoint.of("/")
    assert (
        "For this, it changed what another agent wrote: report.md (of `/first`). Decide what stays."
        in decider.last
    )
    assert product.run("replay", str(done.journal), "--verify").status == 0
