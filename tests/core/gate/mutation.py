"""Scripts that are nearly right, for the fuzzer: made from a grammar, spliced from a corpus, and broken by a little.

What is looked for is a script that counts as a look and does more. So most of them hold a hostile command where it is
harmless (in quotes, in a comment, in a here-document, as words of a test), and a mutation may let it out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

HOSTILE: Final = (
    "rm victim.txt", "rm -rf vd", ": > victim.txt", "find vd -delete", "touch came", "mkdir came", "cp f victim.txt",
    "tee victim.txt", "came",
)  # fmt: skip
_LOOKS: Final = (
    "ls", "cat f", "echo a b", "wc -l < f", "true", "grep a f", "head -1 f", "sort f", "pwd", "printf x", ":", "test -f f",
    "sed -n 1p f", "awk '{print $1}' f", "find vd -name a.txt", "tr a b < f", "ls | wc -l", "date",
)  # fmt: skip
_HIDING: Final = (
    "echo '{bad}'", 'echo "{bad}"', "# {bad}", "echo a # {bad}", "echo {bad}", ": {bad}", "printf '%s' '{bad}'",
    "cat <<'E'\n{bad}\nE", "cat <<E\n{bad}\nE", "cat <<-E\n\t{bad}\n\tE", "cat <<E | wc -l\n{bad}\nE", "x='{bad}'", 'x="{bad}"; echo "$x"',
    "[ '{bad}' = x ]", "[[ '{bad}' == x ]]", "[[ x =~ '{bad}' ]]", "case '{bad}' in x) ls;; esac", "grep '{bad}' f", "echo $'{bad}'",
    "sed -n '/{bad}/p' f", "awk '/{bad}/' f", "for x in {bad}; do echo $x; done", "a=({bad}); echo ${{a[0]}}", "echo ${{x:-{bad}}}",
    'echo "${{x:-{bad}}}"', "cat <<< '{bad}'", "echo \"$(echo '{bad}')\"", "find vd -name '{bad}'", "bash -c 'echo {bad}'",
    "bash -c 'cat <<E\n{bad}\nE'", "eval 'echo {bad}'", "echo `echo {bad}`", "echo $(cat <<'E'\n{bad}\nE\n)", "test '{bad}' = x",
    "echo '{bad}' | grep x", "echo {bad} | xargs echo", "echo x | xargs -I{{}} echo {bad} {{}}", "trap 'echo {bad}' EXIT",
    "if [ -f f ]; then echo '{bad}'; fi", "while false; do echo {bad}; done", "f() {{ echo '{bad}'; }}; f", "sh -c 'echo \"{bad}\"'",
    "n=3; echo $((n + 1)) '{bad}'", "echo ${{#x}} '{bad}'", "ls '{bad}' 2>/dev/null", "echo {{a,b}} '{bad}'", "env x=1 echo {bad}",
    "time echo {bad}", "! echo '{bad}'", "echo \\\n {bad}", "tr '{bad}' x < f", "read -r x <<< '{bad}'; echo \"$x\"", "echo {bad} > /dev/null",
)  # fmt: skip
_FRAGMENTS: Final = (
    "\n", "\n", "\n", " ", "\t", ";", ";;", ";&", "&", "&&", "||", "|", "|&", "(", ")", "((", "))", "{", "}", " { ", " }", "[", "]", " [ ", " ] ",
    "[[", "]]", " [[ ", " ]] ", "<", ">", "<<", "<<E", "<<'E'", "<<-E", "\nE\n", "E", "<<<", "<(", ">(", "<&", ">&", "&>", "<>", ">|", "2>", "1<",
    "'", '"', "`", "$", "$(", "$((", "${", "${x", "${x:-", "$'", '$"', "$[", "\\", "\\\n", "#", " #", " # ", "=", "==", "=~", "==\n", "=~\n", " == ",
    " =~ ", "+=", "!", " ! ", "-eq", "-v", " -a ", " -o ", "*", "?", "~", "x=", "x=1 ", " if ", " then ", " fi", " do ", " done", " for x in ", " while ",
    " case x in ", " x) ", " esac", " in ", "function f ", "f() ", "time ", "coproc ", "select x in ", "eval ", "exec ", "trap ", "export ", "declare ",
    "local ", "xargs ", "env ", "-I{} ", "-n1 ", "-c ", "$x", "$@", "$1", "{a,b}", "{1..3}", "\u00a0", "\v", "\r", "é", ",", ":", "%", "^", "@(", "?(",
)  # fmt: skip
_TOKEN: Final = re.compile(r"\w+|\s|[^\w\s]")


def seed(dice: random.Random) -> str:
    """A script that only looks and that holds something hostile; now and then one of two or three parts."""
    parts = [
        dice.choice(_HIDING).format(bad=dice.choice(HOSTILE)) if dice.random() < 0.7 else dice.choice(_LOOKS)
        for _ in range(dice.choice((1, 1, 1, 2, 2, 3)))
    ]
    return _join(dice, parts)


def _join(dice: random.Random, parts: Sequence[str]) -> str:
    whole = parts[0]
    for part in parts[1:]:
        shape = dice.choice(
            ("{}\n{}", "{}\n{}", "{}; {}", "{} && {}", "if {}\nthen {}\nfi", "( {}\n{}\n)", "{{ {}\n{}\n}}", "echo $({}\n{}\n)",
             'echo "$({}\n{}\n)"', "cat <({}\n{}\n)", "for i in 1; do {}\n{}\ndone", "f() {{ {}\n{}\n}}; f", "case x in x) {}\n{}\n;; esac",
             "[[ -n $({}\n{}\n) ]]", "{} | {}", "cat <<E\n$({}\n{}\n)\nE", "echo `{}\n{}`")
        )  # fmt: skip
        whole = shape.format(whole, part)
    return whole


def _insert(dice: random.Random, tokens: list[str]) -> None:
    tokens.insert(dice.randint(0, len(tokens)), dice.choice(_FRAGMENTS))


def _delete(dice: random.Random, tokens: list[str]) -> None:
    start = dice.randrange(len(tokens))
    del tokens[start : start + dice.choice((1, 1, 1, 2, 3))]


def _double(dice: random.Random, tokens: list[str]) -> None:
    place = dice.randrange(len(tokens))
    tokens.insert(place, tokens[place])


def _swap(dice: random.Random, tokens: list[str]) -> None:
    first, second = dice.randrange(len(tokens)), dice.randrange(len(tokens))
    tokens[first], tokens[second] = tokens[second], tokens[first]


def _replace(dice: random.Random, tokens: list[str]) -> None:
    tokens[dice.randrange(len(tokens))] = dice.choice(_FRAGMENTS)


_CHANGES: Final[tuple[Callable[[random.Random, list[str]], None], ...]] = (
    _insert, _insert, _insert, _delete, _double, _swap, _replace
)  # fmt: skip


def mutant(dice: random.Random, corpus: Sequence[str]) -> str:
    """One script. `corpus`: others, of which parts are taken."""
    kind = dice.random()
    if kind < 0.55:
        text = seed(dice)
    elif kind < 0.8:
        text = dice.choice(corpus)
    else:
        front, back = (seed(dice) if dice.random() < 0.5 else dice.choice(corpus) for _ in range(2))
        text = front[: dice.randint(0, len(front))] + back[dice.randint(0, len(back)) :]
    tokens = _TOKEN.findall(text)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        if not tokens:
            break
        dice.choice(_CHANGES)(dice, tokens)
    return "".join(tokens)


def smaller(text: str) -> list[str]:
    """Texts that lack one piece of `text`, the longest pieces first."""
    tokens = _TOKEN.findall(text)
    found = []
    size = len(tokens) // 2
    while size:
        found += ["".join(tokens[:start] + tokens[start + size :]) for start in range(0, len(tokens), size)]
        size //= 2
    return found
