"""The programs in the guide for embedding run as they are printed there, and do what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from iact.core.errors import UsageError
from iact.core.session.watch import Watcher
from tests.acceptance.product import ROOT, Product
from tests.acceptance.test_responses import POLICY
from tests.endpoint import Endpoint, HttpError, Reply

GUIDE: Final = (ROOT / "docs" / "how-to" / "embed.md").read_text(encoding="utf-8")
ASKS, WATCHES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def run(folder: Path, program: str, *replies: str | Reply) -> subprocess.CompletedProcess[str]:
    with Endpoint({"/": [*replies]}) as endpoint:
        product = Product.at(folder, endpoint)
        (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-c", program], env=product.environment, cwd=folder, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip


def test_it_asks(tmp_path: Path) -> None:
    done = run(tmp_path, ASKS, "Hello.")
    assert done.returncode == 0, done.stderr
    said, journal = done.stdout.splitlines()
    assert (said, Path(journal).is_file()) == ("Hello.", True)


def test_it_is_asked_and_answers(tmp_path: Path) -> None:
    done = run(tmp_path, WATCHES, "```files.write path=a.txt\nhello\n```", "Done.")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("/ asks to run files.write (impact 1).")
    assert done.stdout.endswith("Done.\n")
    assert not [*tmp_path.rglob("a.txt")]


def test_it_ends_with_the_sentence_of_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, WATCHES, Reply(error=HttpError(401, "No such key.")))
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not accept the API key" in done.stderr


async def test_a_watcher_that_was_not_entered_says_so() -> None:
    with pytest.raises(UsageError, match=r"async with session\.watch"):
        await anext(Watcher(set(), ()))
