"""The same call in other clothes is the same call; one that differs is not."""

from __future__ import annotations

import itertools

import pytest

from iact.core.gate.kind_of_call import kind_of, waits
from iact.core.ports import JSON


def shell(command: str, **more: JSON) -> str:
    return kind_of("shell.run", {"command": command, **more})


@pytest.mark.parametrize(
    "others",
    [
        (
            "rm -rf build",
            " rm   -rf\tbuild \n",
            "rm -rf build # now",
            "# first\n\nrm -rf \\\n  build\n",
            "rm -rf build;",
        ),
        ("a | b && c", "a|b&&c", "a |b  &&\n c"),
        ("a; b", "a\nb", "a ;\n\n# then\nb"),
        ("x > f 2>&1", "x >f 2>&1", "x  >  f  2>& 1"),
        ("echo 'a  b' \"c  d\"", "echo  'a  b'   \"c  d\""),
        ("; a", ";#x\na", "a"),
    ],
)
def test_blanks_and_comments_of_a_script_change_nothing(others: tuple[str, ...]) -> None:
    assert len({shell(one) for one in others}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("echo 'a  b'", "echo 'a b'"),
        ('echo "a  b"', 'echo "a b"'),
        ("echo a\\ b", "echo a b"),
        ("echo a#b", "echo a#c"),
        ("echo ${#a}", "echo ${#b}"),
        ("x 2 >f", "x 2>f"),
        ("x & > f", "x &> f"),
        ("cat > f <<E\na  b\nE", "cat > f <<E\na b\nE"),
        ("cat > f <<E\n# one\nE", "cat > f <<E\n# two\nE"),
        ('echo "$(echo "a  b")"', 'echo "$(echo "a b")"'),
        ("echo `echo '#' a`", "echo `echo '#' b`"),
        ("echo $'it\\'s  a'", "echo $'it\\'s a'"),
        ("rm a", "rm b"),
        ("ab", "a b"),
        ("a & b", "a && b"),
        ("case x in a) ;; esac", "case x in a) ; esac"),
    ],
)
def test_scripts_that_differ_are_told_apart(one: str, other: str) -> None:
    assert shell(one) != shell(other)


def test_the_order_of_arguments_and_a_time_limit_change_nothing() -> None:
    assert kind_of("t.a", {"x": 1, "y": " two\n"}) == kind_of("t.a", {"y": "two", "x": 1})
    assert shell("ls", timeout=20) == shell("ls", timeout=30) == shell("ls")
    assert shell("ls", background=True) != shell("ls")
    assert kind_of("t.a", {"timeout": 1}) != kind_of("t.a", {"timeout": 2})
    assert kind_of("t.a", {"x": "1"}) != kind_of("t.b", {"x": "1"})
    assert kind_of("t.a", {"x": "a  b"}) != kind_of("t.a", {"x": "a b"})


def test_python_is_compared_by_its_words() -> None:
    def python(code: str) -> str:
        return kind_of("python.run", {"code": code})

    same = ["if a:\n  b(1, 2)\n", "# now\nif a :\n    b(1,2)  # so\n\n"]
    assert len({python(one) for one in same}) == 1
    assert shell(same[0], language="python") == shell(same[1], language="python")
    for one, other in itertools.combinations(
        ["'a  b'", "'a b'", "if a:\n  b\nc", "if a:\n  b\n  c", "(", "( ("], 2
    ):
        assert python(one) != python(other)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("shell.output", {"job": 1, "wait": 5}, True),
        ("shell.output", {"job": 1, "wait": 0}, False),
        ("shell.run", {"command": "sleep 5; test -f done"}, True),
        ("shell.run", {"command": "cat sleepy.txt"}, False),
        ("t.a", {"command": "sleep 5"}, False),
    ],
)
def test_a_call_that_waits_by_itself_is_known(
    function: str, arguments: dict[str, JSON], expected: bool
) -> None:
    assert waits(function, arguments) == expected
