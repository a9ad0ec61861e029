"""The shell classifier against a corpus of plain and of hostile commands (issue 6)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from iact.core.gate.shell import judge_script

CORPUS = tomllib.loads((Path(__file__).parent / "corpus" / "shell.toml").read_text(encoding="utf-8"))


def commands(group: str, name: str) -> list[str]:
    """The commands of one list."""
    return [line.replace("⏎", "\n") for line in CORPUS[group][name].splitlines() if line]


PLAIN = [(effect, command) for effect in CORPUS["plain"] for command in commands("plain", effect)]
HOSTILE = [(trick, command) for trick in CORPUS["hostile"] for command in commands("hostile", trick)]


def test_the_corpus_is_large_and_half_of_it_is_hostile() -> None:
    assert len(PLAIN) + len(HOSTILE) >= 300
    assert len(HOSTILE) * 2 >= len(PLAIN) + len(HOSTILE)
    assert len({command for _, command in PLAIN + HOSTILE}) >= 300


@pytest.mark.parametrize(("trick", "command"), HOSTILE)
def test_a_hostile_command_has_impact_2_on_what_is_live_and_1_on_scratch(trick: str, command: str) -> None:
    judgement = judge_script(command)
    assert judgement.impact(live=True) == 2, f"{trick}: taken for {judgement.worst}"
    assert judgement.impact(live=False) == 1


@pytest.mark.parametrize(("effect", "command"), [one for one in PLAIN if one[0] != "observe"])
def test_a_plain_command_has_its_effect(effect: str, command: str) -> None:
    assert judge_script(command).effect == effect


def test_at_most_one_plain_observation_in_twenty_is_taken_for_more() -> None:
    looks = commands("plain", "observe")
    more = {one: judge_script(one).worst for one in looks if judge_script(one).impact(live=True) > 0}
    assert len(more) <= len(looks) / 20, more
    assert all(judge_script(one).impact(live=False) == 0 for one in looks if one not in more)


@pytest.mark.parametrize("text", ["", "\n", "# nothing", "   "])
def test_nothing_does_nothing(text: str) -> None:
    assert judge_script(text).impact(live=True) == 0


@pytest.mark.parametrize(
    "text",
    [
        "if",
        "ls (",
        "echo 'x",
        "ls \x00",
        "a\rb",
        "x" * 100_000,
        "((((((" * 500,
        "$(" * 300 + ")" * 300,
        "'" * 999,
    ],
)
def test_what_is_no_script_is_not_understood(text: str) -> None:
    assert judge_script(text).effect == "unknown"


def test_another_language_is_other_code() -> None:
    judgement = judge_script("print(1)", language="python")
    assert (judgement.impact(live=False), judgement.impact(live=True)) == (1, 2)


SESSION = """
mkdir -p project/src && cd project
cat > src/main.py <<'EOF'⏎def main():⏎    print("hi")⏎EOF
python -m venv .venv && . .venv/bin/activate
pip install -e . && pytest -q
sed -i 's/hi/hello/' src/main.py
make build 2>&1 | tee build.log
git init && git add -A && git commit -m 'first'
chmod +x run.sh && ./run.sh > out.txt
curl -s http://localhost:8000/health
rm -rf build dist out.txt
kill %1; pkill -f server
tar czf release.tgz src && mv release.tgz dist.tgz
"""


def test_a_whole_session_of_coding_passes_at_intent_1_in_a_scratch_workspace() -> None:
    for line in SESSION.strip().splitlines():
        assert judge_script(line.replace("⏎", "\n")).impact(live=False) == 1, line


def test_nothing_that_writes_passes_at_intent_0() -> None:
    for effect, command in PLAIN:
        if effect != "observe":
            assert judge_script(command).impact(live=False) == 1, command
            assert judge_script(command).impact(live=True) >= 1, command


SHAPES = [
    "{look}; {bad}",
    "{look} && {bad}",
    "{bad}\n{look}",
    "({bad})",
    "{{ {bad}\n}}",
    "! {bad}",
    "if true; then {bad}\nfi",
    "for i in 1 2; do {bad}\ndone",
    "while {bad}\ndo {look}; done",
    "case x in x) {bad}\n;; esac",
    "f() {{ {bad}\n}}; f",
    "echo $({bad}\n)",
    'echo "a $({bad}\n) b"',
    "x=$({bad}\n)",
    "cat <({bad}\n)",
    "cat <<EOF\n$({bad}\n)\nEOF",
    "[[ -n $({bad}\n) ]] && {look}",
    "{look} | while read -r l; do {bad}\ndone",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_stands_around_a_hostile_command_does_not_hide_it(shape: str) -> None:
    looks = commands("plain", "observe")
    for number, (trick, bad) in enumerate(HOSTILE):
        if "EOF" in shape and "EOF" in bad:
            continue  # the inner document would end the outer one, and the script would be another
        script = shape.format(look=looks[number % 60], bad=bad)
        assert judge_script(script).impact(live=True) == 2, f"{trick}: {script}"


@pytest.mark.parametrize("shape", [*SHAPES[:5], *SHAPES[6:8]])
def test_what_stands_around_a_look_does_not_make_it_more(shape: str) -> None:
    more = [
        script
        for look in commands("plain", "observe")
        if judge_script(script := shape.format(look="ls", bad=look)).impact(live=True) > 0
    ]
    assert len(more) <= len(commands("plain", "observe")) / 16, more
