"""`files`, in process: what each function gives, what it refuses, and that no link leads out."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ext_modules.files import edits, place
from ext_modules.files.edits import Change, EditProblem
from ext_modules.files.module import module
from ext_modules.sdk import wire
from ext_modules.sdk.loader import load
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON, Value
from iact.core.modules.manifest import Manifest
from tests.rounds import rounds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.setenv("IACT_WORKSPACE", str(folder))
    return folder


def call(function: str, **arguments: JSON) -> Done:
    return asyncio.run(Bench(module).call(function, arguments))


def given_back(function: str, **arguments: JSON) -> str:
    done = call(function, **arguments)
    assert done.error is None, done.error
    assert done.ends == 1
    return done.output


def refused(function: str, **arguments: JSON) -> str:
    done = call(function, **arguments)
    assert done.error is not None, done.output
    assert done.ends == 1
    return done.error.message


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("one\ntwo", b"one\ntwo\n"),
        ("one\n", b"one\n"),
        ("one\n\n", b"one\n\n"),
        ("one\r\ntwo", b"one\r\ntwo\r\n"),
        ("tab\t é \u2028 end", "tab\t é \u2028 end\n".encode()),
        ("", b""),
    ],
)
def test_a_file_written_as_a_body_ends_as_a_text_file_does(workspace: Path, body: str, kept: bytes) -> None:
    assert given_back("write", path="f", content=body) == f"Created f, {len(kept)} bytes.\n"
    assert (workspace / "f").read_bytes() == kept
    given_back("write", path="f", content=body, newline=False)
    assert (workspace / "f").read_bytes() == body.encode()


def test_an_edit_keeps_the_end_of_the_file(workspace: Path) -> None:
    change = "<<<<<<<\ntwo\n=======\nthree\n>>>>>>>"
    for end in ("", "\n", "\n\n"):
        (workspace / "f").write_text(f"one\ntwo{end}", encoding="utf-8")
        given_back("edit", path="f", changes=change)
        assert (workspace / "f").read_text(encoding="utf-8") == f"one\nthree{end}"


def test_a_body_is_compared_as_the_text_file_that_it_would_be(workspace: Path) -> None:
    given_back("write", path="f", content="one\ntwo")
    assert given_back("diff", path="f", content="one\ntwo") == "[They are the same.]\n"


def test_the_manifest_is_one_that_the_core_takes() -> None:
    manifest = Manifest.from_proto(
        wire.manifest(load(ROOT / "ext_modules/files/module.py")).SerializeToString()
    )
    impacts = {function.name: function.impact for function in manifest.functions}
    assert impacts == {"list": 0, "read": 0, "search": 0, "diff": 0, "write": 1, "edit": 1}
    assert manifest.needs.workspace == "write"
    assert all(function.documentation.count("\n") < 20 for function in manifest.functions)


# --- list ---------------------------------------------------------------------------------------------


def test_list_shows_sizes_folders_and_links(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"x" * 1234)
    (workspace / "b").mkdir()
    (workspace / "b" / "inner").write_bytes(b"")
    (workspace / "link").symlink_to("/etc")
    (workspace / ".hidden").write_bytes(b"")
    os.mkfifo(workspace / "pipe")
    *lines, last = given_back("list").splitlines()
    assert last == "[1 hidden (hidden=true shows them): .hidden]"
    rows = [line.split(maxsplit=1) for line in lines]
    assert rows == [["1,234", "a.txt"], ["b/"], ["link", "link -> /etc"], ["special", "pipe"]]
    assert "b/inner" in given_back("list", depth=2)
    assert "b/inner" not in given_back("list", depth=1)
    assert ".hidden" in given_back("list", hidden=True)


def test_list_does_not_walk_through_links(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"")
    (workspace / "link").symlink_to(tmp_path / "outside")
    assert "secret" not in given_back("list", depth=5)
    assert "is a link to" in refused("list", path="link")


def test_list_is_bounded(workspace: Path) -> None:
    for number in range(1003):
        (workspace / f"{number:04}").touch()
    lines = given_back("list").splitlines()
    assert len(lines) == 1001
    assert "more than 1,000" in lines[-1]


# --- read ---------------------------------------------------------------------------------------------


def test_read_gives_all_or_a_range(workspace: Path) -> None:
    (workspace / "f").write_bytes("".join(f"line {n}\n" for n in range(1, 11)).encode())
    assert given_back("read", path="f").count("\n") == 10
    assert given_back("read", path="f", start=3, end=4) == "line 3\nline 4\n"
    assert given_back("read", path="f", start=9) == "line 9\nline 10\n"
    assert given_back("read", path=str(workspace / "f"), start=10, end=99) == "line 10\n"
    assert "has 10 lines" in refused("read", path="f", start=11)
    assert "not a range" in refused("read", path="f", start=4, end=3)
    assert "not a range" in refused("read", path="f", start=0)


def test_read_says_where_to_go_on(workspace: Path) -> None:
    (workspace / "f").write_text("x\n" * 5000, encoding="utf-8")
    first = call("read", path="f")
    assert first.output.endswith("[There is more; go on with start=2001.]\n")
    assert first.data == {"first": 1, "last": 2000, "complete": False}
    assert given_back("read", path="f", start=2001, end=5000).count("\n") == 3000


def test_read_of_one_endless_line_is_bounded(workspace: Path) -> None:
    (workspace / "f").write_text("x" * 5_000_000, encoding="utf-8")
    assert len(given_back("read", path="f")) < 300_000


def test_read_gives_bytes_as_an_artifact(workspace: Path) -> None:
    (workspace / "p.png").write_bytes(b"\x89PNG\0\0")
    done = call("read", path="p.png")
    assert done.artifacts[done.artifact] == Value(b"\x89PNG\0\0", "image/png", "p.png")


def test_empty_file_is_empty(workspace: Path) -> None:
    (workspace / "f").touch()
    assert given_back("read", path="f") == ""


# --- confinement --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "/workspacex/f", "..", "a/../.."])
def test_paths_out_of_the_workspace_are_refused(workspace: Path, path: str) -> None:
    assert "workspace" in refused("read", path=path)
    assert "workspace" in refused("write", path=path, content="x")


@pytest.mark.parametrize("function", ["read", "write", "edit", "diff"])
def test_links_are_not_followed(workspace: Path, tmp_path: Path, function: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    (workspace / "file").symlink_to(secret)
    (workspace / "folder").symlink_to(tmp_path)
    needed: dict[str, dict[str, JSON]] = {
        "read": {}, "write": {"content": "x"}, "edit": {"old": "secret", "new": "x"}, "diff": {"content": "x"}
    }  # fmt: skip
    more = needed[function]
    for path in ("file", "folder/secret"):
        message = refused(function, path=path, **more)
        assert "is a link to" in message
        assert "links are not followed" in message
    assert secret.read_text(encoding="utf-8") == "secret"
    assert not any(name.endswith(".draft") for name in os.listdir(workspace))


def test_search_follows_no_links(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    (workspace / "file").symlink_to(tmp_path / "secret")
    (workspace / "folder").symlink_to(tmp_path)
    assert given_back("search", pattern="secret") == "[Nothing matches in 0 files.]\n"
    assert "is a link" in refused("search", pattern="secret", path="folder")


def test_special_files_are_refused_and_do_not_block(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    assert "neither a file nor a folder" in refused("read", path="pipe")
    assert refused("write", path="pipe", content="x")
    assert given_back("search", pattern="x") == "[Nothing matches in 0 files.]\n"


def test_missing_files_and_folders_are_named(workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "f").touch()
    assert (
        refused("read", path="no/such") == "There is no no in the workspace; files.list shows what is there."
    )
    assert "d is a folder" in refused("read", path="d")
    assert "d is a folder" in refused("write", path="d", content="")
    assert "f is a file, not a folder" in refused("read", path="f/x")
    assert "NUL" in refused("read", path="a\0b")
    assert "can't be opened" in refused("read", path="x" * 300)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=rounds(50))
@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "\udcff"]), max_size=8))
def test_no_path_has_steps_that_lead_up(workspace: Path, steps: list[str]) -> None:
    try:
        found = place.parts_of("/".join(steps))
    except place.FileProblem:
        return
    assert not set(found) & {"..", ".", ""}
    assert Path(os.path.normpath(workspace.joinpath(*steps))) == workspace.joinpath(*found) or not steps[0]


# --- write --------------------------------------------------------------------------------------------


def test_write_makes_folders_and_replaces_at_once(workspace: Path) -> None:
    assert given_back("write", path="a/b/f.txt", content="one\n") == "Created a/b/f.txt, 4 bytes.\n"
    (workspace / "a/b/f.txt").chmod(0o750)
    before = (workspace / "a/b/f.txt").stat().st_ino
    assert given_back("write", path="a/b/f.txt", content="two\n").startswith("Replaced")
    after = (workspace / "a/b/f.txt").stat()
    assert (workspace / "a/b/f.txt").read_text(encoding="utf-8") == "two\n"
    assert after.st_ino != before, "readers of the old file keep it whole"
    assert stat.S_IMODE(after.st_mode) == 0o750
    assert os.listdir(workspace / "a/b") == ["f.txt"]


def test_write_takes_bytes(workspace: Path) -> None:
    content = bytes(range(256))
    done = asyncio.run(Bench(module).call("write", {"path": "f"}, values={"content": Value(content)}))
    assert done.error is None
    assert (workspace / "f").read_bytes() == content


# --- edit ---------------------------------------------------------------------------------------------

BLOCKS = """<<<<<<< here
two
=======
2
zwei
>>>>>>>

<<<<<<<
four
=======
>>>>>>> there
"""


def test_edit_makes_all_changes(workspace: Path) -> None:
    (workspace / "f").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    assert given_back("edit", path="f", changes=BLOCKS) == "Changed f in 2 places.\n"
    assert (workspace / "f").read_text(encoding="utf-8") == "one\n2\nzwei\nthree\n"


def test_edit_makes_all_or_none(workspace: Path) -> None:
    (workspace / "f").write_text("one\ntwo\nthree\n", encoding="utf-8")
    assert "old text of change 2 does not occur" in refused("edit", path="f", changes=BLOCKS)
    assert (workspace / "f").read_text(encoding="utf-8") == "one\ntwo\nthree\n"


def test_edit_wants_a_unique_text(workspace: Path) -> None:
    (workspace / "f").write_text("a\nb\na\n", encoding="utf-8")
    message = refused("edit", path="f", old="a", new="c")
    assert "occurs 2 times (at lines 1, 3)" in message
    (workspace / "g").write_text("aaa", encoding="utf-8")
    assert "occurs 2 times" in refused("edit", path="g", old="aa", new="c")
    assert given_back("edit", path="f", old="b\na", new="c")
    assert (workspace / "f").read_text(encoding="utf-8") == "a\nc\n"


def test_edit_says_what_is_near(workspace: Path) -> None:
    (workspace / "f").write_text("x\n    indented\n", encoding="utf-8")
    assert "its first line is like line 2" in refused("edit", path="f", old="\tindented\n", new="")


def test_edit_says_that_an_old_text_ends_within_a_line(workspace: Path) -> None:
    (workspace / "f").write_text("one\nthe colour of it\nthree\n", encoding="utf-8")
    said = refused("edit", path="f", changes="<<<<<<<\none\nthe colour\n=======\nx\n>>>>>>>")
    assert "The old text occurs, but line 2 of the file goes on behind it; give that line to its end" in said
    assert "does not occur" not in said
    assert given_back("edit", path="f", old="the colour", new="the color")
    assert (workspace / "f").read_text(encoding="utf-8") == "one\nthe color of it\nthree\n"


@pytest.mark.parametrize("arguments", [{}, {"changes": BLOCKS, "old": "x"}])
def test_edit_wants_one_of_its_two_forms(workspace: Path, arguments: dict[str, JSON]) -> None:
    (workspace / "f").write_text("x", encoding="utf-8")
    assert "Give either changes" in refused("edit", path="f", **arguments)


@pytest.mark.parametrize("body", ["what?", "<<<<<<<\na\n", "<<<<<<<\na\n=======\n", "=======\n"])
def test_malformed_changes_are_refused(body: str) -> None:
    with pytest.raises(EditProblem):
        edits.parse(body)


def test_edit_keeps_line_ends(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"one\r\ntwo\r\n")
    assert given_back("edit", path="f", changes="<<<<<<<\ntwo\n=======\n2\n>>>>>>>\n")
    assert (workspace / "f").read_bytes() == b"one\r\n2\r\n"
    (workspace / "g").write_bytes(b"one\ntwo")
    assert given_back("edit", path="g", changes="<<<<<<<\ntwo\n=======\n2\n>>>>>>>\n")
    assert (workspace / "g").read_bytes() == b"one\n2"


def test_edit_refuses_what_is_not_text(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in refused("edit", path="f", old="a", new="b")


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=5), st.text("xy\n", max_size=5))
def test_a_change_touches_nothing_but_its_text(text: str, old: str, new: str) -> None:
    try:
        after = edits.apply(text, [Change(old, new)])
    except EditProblem:
        return
    bare_old, bare_new = (old, new) if old in text else (old.removesuffix("\n"), new.removesuffix("\n"))
    before, found, rest = text.partition(bare_old)
    assert found
    assert after == before + bare_new + rest


# --- search -------------------------------------------------------------------------------------------


def test_search_gives_path_line_and_text(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("import os\ndef read():\n    pass\n", encoding="utf-8")
    (workspace / "b.txt").write_text("def read():\n", encoding="utf-8")
    (workspace / "c.bin").write_bytes(b"def read\0")
    assert given_back("search", pattern=r"def (read|write)\(" + "\n").splitlines() == [
        "b.txt:1:def read():",
        "src/a.py:2:def read():",
    ]
    assert given_back("search", pattern="def", glob="*.py") == "src/a.py:2:def read():\n"
    assert given_back("search", pattern="def", glob="src/*") == "src/a.py:2:def read():\n"
    assert given_back("search", pattern="DEF", path="src") == "[Nothing matches in 1 file.]\n"
    assert given_back("search", pattern="(?i)DEF", path="src", context=1).splitlines() == [
        "src/a.py-1-import os",
        "src/a.py:2:def read():",
        "src/a.py-3-    pass",
    ]
    assert given_back("search", pattern="def", path="src", glob="src/*") == "src/a.py:2:def read():\n"
    assert (
        given_back("search", pattern="def", path="/src/../src/a.py".lstrip("/")) == "src/a.py:2:def read():\n"
    )


def test_every_path_that_is_given_back_can_be_read(workspace: Path) -> None:
    """Whatever folder was listed or searched, a path is relative to the workspace."""
    (workspace / "deep/er").mkdir(parents=True)
    (workspace / "deep/er/a.txt").write_text("needle\n", encoding="utf-8")
    listed = given_back("list", path="deep", depth=2).splitlines()
    assert [line.split()[-1] for line in listed] == ["deep/er/", "deep/er/a.txt"]
    for folder in ("deep", "deep/er", "./deep/er/"):
        found = given_back("search", pattern="needle", path=folder).split(":")[0]
        assert given_back("read", path=found) == "needle\n"


def test_search_is_bounded(workspace: Path) -> None:
    (workspace / "f").write_text("x\n" * 1000, encoding="utf-8")
    lines = given_back("search", pattern="x", most=5).splitlines()
    assert len(lines) == 6
    assert (
        lines[-1]
        == "[There is more than this; most=... gives more hits, another pattern, path or glob fewer.]"
    )
    (workspace / "f").write_text(("x" * 10_000 + "\n") * 3000, encoding="utf-8")
    assert len(given_back("search", pattern="x", most=100_000)) < 300_000


def test_a_wrong_pattern_is_named(workspace: Path) -> None:
    assert "not a regular expression" in refused("search", pattern="(")


def test_a_pattern_that_never_ends_is_ended(workspace: Path) -> None:
    """Python's own regular expressions hold the interpreter, so that no deadline could end them in process."""
    (workspace / "f").write_text("a" * 60 + "!\n", encoding="utf-8")

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await Bench(module).call("search", {"pattern": "(a+)+$"})

    asyncio.run(scenario())
    running = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(b"(a+)+$" in path.read_bytes() for path in running if path.exists())


# --- diff ---------------------------------------------------------------------------------------------


def test_diff_of_two_files_and_of_a_text(workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\n", encoding="utf-8")
    (workspace / "b").write_text("one\n2", encoding="utf-8")
    expected = "--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
    assert given_back("diff", path="a", other="b") == expected
    assert given_back("diff", path="a", content="one\n2").splitlines()[1] == "+++ b/a"
    assert given_back("diff", path="a", content="one\ntwo\n") == "[They are the same.]\n"


def test_search_looks_into_a_text_instead_of_files(workspace: Path) -> None:
    (workspace / "a.txt").write_text("needle\n")
    text = "hay\na needle\nhay\nneedle\n"
    assert given_back("search", pattern="needle", content=text) == "2:a needle\n4:needle\n"
    assert given_back("search", pattern="^a", content=text, context=1) == "1-hay\n2:a needle\n3-hay\n"
    assert given_back("search", pattern="needle", content="") == "[Nothing matches in 0 lines.]\n"
    assert given_back("search", pattern="needle", content=text, most=1).startswith(
        "2:a needle\n[There is more"
    )


def test_search_says_what_it_left_out(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".env").write_text("needle\n")
    (workspace / "a.bin").write_bytes(b"needle\0")
    (workspace / "b.md").write_text("needle\n")
    (workspace / "c.txt").write_text("hay\n")
    assert given_back("search", pattern="needle", glob="*.txt") == (
        "[Nothing matches in 1 file; left out: 2 hidden (hidden=true), 2 of other names.]\n"
    )
    assert given_back("search", pattern="Needle") == (
        "[Nothing matches in 2 files; left out: 2 hidden (hidden=true), 1 not text.]\n"
    )
    assert given_back("search", pattern="needle", hidden=True) == ".env:1:needle\nb.md:1:needle\n"
    (workspace / "d.log").write_bytes(b"x" * (9 << 20))
    assert given_back("search", pattern="needle") == "b.md:1:needle\n[Left out: 1 over 8 MB (d.log).]\n"


def test_search_takes_a_file_and_shows_the_part_of_a_long_line_that_matches(workspace: Path) -> None:
    (workspace / "a.txt").write_text("hay\n" + "x" * 1000 + "needle" + "y" * 1000 + "\n")
    found = given_back("search", pattern="needle", path="a.txt")
    assert found == f"a.txt:2:[800 characters] {'x' * 200}needle{'y' * 194} [806 characters]\n"
    assert given_back("search", pattern="hay", path="a.txt", content="hay") == "1:hay\n"
    assert "write a|b for either" in refused("search", pattern="hay\nneedle")


def test_what_was_forgotten_is_asked_for_and_not_taken_as_empty(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    assert 'new="" takes the old text out' in refused("edit", path="a.txt", old="one")
    assert "Give the other side" in refused("diff", path="a.txt")
    assert given_back("edit", path="a.txt", old="one", new="")
    assert (workspace / "a.txt").read_text() == "\n"
