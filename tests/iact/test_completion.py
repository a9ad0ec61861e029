"""Shell completion, as a shell has it: the script is sourced, and words are completed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from iact.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(source: str, *words: str) -> set[str]:
    """What bash offers for the last of `words` after `iact`."""
    line = ["iact", *words]
    asked = f"""
COMP_WORDS=({shlex.join(line)}); COMP_CWORD={len(words)}
_iact_completion {shlex.quote(str(Path(sys.executable).with_name("iact")))}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-euc", f"{source}\ncomplete -p iact >&2\n{asked}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.rstrip().endswith("iact")
    return set(done.stdout.split())


def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    source = script("bash", capsys)
    assert completed(source, "jour") == {"journal"}
    assert completed(source, "journal", "h") == {"html"}
    assert completed(source, "replay", "--ver") == {"--verify"}
    assert completed(source, "run", "--mode", "") >= {"dialogue", "auto", "static"}
    assert completed(source, "completion", "") == {"bash", "zsh", "fish"}


@pytest.mark.parametrize(
    ("shell", "head"), [("zsh", "#compdef iact"), ("fish", "complete --no-files --command iact")]
)
def test_the_other_shells_get_a_script_of_theirs(
    shell: str, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert head in script(shell, capsys)
