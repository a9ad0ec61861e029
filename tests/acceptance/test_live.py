"""A live directory through the product: changes are applied if they are allowed, or when a person applies them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import stat
import subprocess
import sys
from pathlib import Path

from iact.core.journal import read_journal
from iact.core.ports import JSON
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, acknowledged, kill, until
from tests.acceptance.test_scenes import served, shell
from tests.endpoint import Reply


def project(folder: Path) -> Path:
    """A directory of the user's."""
    mine = folder / "mine"
    (mine / "src").mkdir(parents=True)
    (mine / "victim").write_text("precious\n")
    (mine / "notes.txt").write_text("one\ntwo\nthree\n")
    (mine / "src" / "main.py").write_text("print('hello')\n")
    (mine / "run.sh").write_text("#!/bin/sh\n")
    return mine


def picture(folder: Path) -> dict[str, tuple[int, str]]:
    """All that is in a folder: modes, contents, targets."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        text = os.readlink(path) if path.is_symlink() else path.read_text() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(folder))] = (stat.S_IMODE(mode), text)
    return found


def ask(product: Product, mine: Path, *options: str, seconds: float = 180) -> tuple[str, list[str]]:
    """One message to a new session in `mine`; its id, and what waits."""
    ran = product.run("run", "--json", "--workspace", str(mine), *options, "Go.", seconds=seconds)
    assert ran.status == 0, ran
    report = json.loads(ran.stdout)
    return report["session"], report["pending"]


def pending(product: Product, session: str) -> dict[str, dict[str, JSON]]:
    """What waits, by path."""
    ran = product.run("workspace", "pending", "--session", session, "--json")
    assert ran.status == 0, ran
    return {row["path"]: row for row in json.loads(ran.stdout)["pending"]}


TRICKS = (
    "rm victim",
    "mv -n src/main.py src/old.py",
    ": > notes.txt",
    "sed -i s/one/ONE/ notes.txt",
    "chmod 777 victim; chmod +x run.sh",
    "ln -s /etc/passwd out; ln -sf notes.txt victim",
    "ln victim twin && echo x >> twin",
    'python3 -c \'import os; os.replace("notes.txt", "victim")\'',
    "find . -name '*.py' -delete",
    "rm -rf src; ln -s / src; echo x > src/tmp/iact-marker",
    "mkfifo pipe; cp victim .hidden",
)


def test_at_intent_1_nothing_of_the_users_changes_and_what_is_added_is_there_at_once(
    stage: Stage, tmp_path: Path
) -> None:
    mine = project(tmp_path)
    before = picture(mine)
    endpoint = stage.endpoint({"/": [shell("echo fresh > added.txt; mkdir -p new/deep; echo 1 > new/deep/a"),
                                     *(shell(trick) for trick in TRICKS), "Done."]})  # fmt: skip
    product = stage.product(endpoint)
    session, waiting = ask(product, mine)
    after = picture(mine)
    assert after.pop("added.txt")[1] == "fresh\n"
    assert [after.pop(one)[1] for one in ("new", "new/deep", "new/deep/a")] == ["", "", "1\n"]
    assert after == before
    assert not Path("/tmp/iact-marker").exists()
    assert {"victim", "notes.txt", "src", "out", "twin", ".hidden"} <= set(waiting)
    assert set(pending(product, session)) == set(waiting)
    verified = product.run("replay", session_path(product, session), "--verify")
    assert verified.status == 0, verified


def test_what_waits_may_take_so_much_room_and_a_person_makes_some(stage: Stage, tmp_path: Path) -> None:
    mine = project(tmp_path)
    big = "head -c 6000000 /dev/urandom > .big"
    endpoint = stage.endpoint(
        {"/": [shell(big), shell("echo 1 > one"), "It is full.", shell("echo 2 > two"), "Done."]}
    )
    product = stage.product(endpoint, IACT_WORKSPACE_BYTES=str(4 << 20))
    session, waiting = ask(product, mine)
    assert waiting == [".big"]
    assert not (mine / "one").exists()
    journal = read_journal(product.data / "sessions" / session)
    refused = [record for record in journal.records if record.kind == "result"][-1]
    assert refused.body.startswith(
        "What was written in the workspace takes more than the 4 MiB that it may. It was not run."
    )
    assert product.run("workspace", "drop", "--session", session).status == 0
    assert product.ask("And now?", session=session).reply == "Done."
    assert (mine / "two").read_text() == "2\n"


def session_path(product: Product, session: str) -> str:
    return str(product.data / "sessions" / session)


def test_a_part_is_applied_and_the_rest_dropped_without_a_server(stage: Stage, tmp_path: Path) -> None:
    mine = project(tmp_path)
    endpoint = stage.endpoint(
        {
            "/": [
                shell("sed -i s/two/TWO/ notes.txt; rm victim; echo x > src/new.py; mv run.sh go.sh"),
                "Done.",
            ]
        }
    )
    product = stage.product(endpoint)
    session, waiting = ask(product, mine)
    assert waiting == ["go.sh", "notes.txt", "run.sh", "src/new.py", "victim"]
    rows = pending(product, session)
    assert (rows["go.sh"]["from"], rows["run.sh"]["to"]) == ("run.sh", "go.sh")
    shown = product.run("workspace", "diff", "--session", session, "notes.txt")
    assert "-two\n+TWO\n" in shown.stdout
    listed = product.run("workspace", "pending", "--session", session)
    assert "~ notes.txt" in listed.stdout
    assert f"iact workspace apply --session {session}" in listed.stderr

    wrong = product.run("workspace", "apply", "--session", session, "nots.txt")
    assert (wrong.status, wrong.sentence) == (
        2,
        "No change is waiting at 'nots.txt'; see iact workspace pending.",
    )
    done = product.agree("workspace", "apply", "--session", session, "notes.txt", "src")
    assert (done.status, done.stdout) == (0, "2 applied\n"), done
    assert (mine / "notes.txt").read_text() == "one\nTWO\nthree\n"
    assert (mine / "src" / "new.py").exists()
    assert (mine / "victim").exists()
    dropped = product.run("workspace", "drop", "--session", session, "--json")
    assert json.loads(dropped.stdout)["done"] == 3
    assert pending(product, session) == {}
    assert sorted(picture(mine)) == ["notes.txt", "run.sh", "src", "src/main.py", "src/new.py", "victim"]
    assert product.run("replay", session_path(product, session), "--verify").status == 0


def test_what_changed_below_meanwhile_is_a_conflict_and_overwritten_by_force_alone(
    stage: Stage, tmp_path: Path
) -> None:
    mine = project(tmp_path)
    endpoint = stage.endpoint({"/": [shell("echo agent > notes.txt; rm victim"), "Done."]})
    product = stage.product(endpoint)
    session, _ = ask(product, mine)
    (mine / "notes.txt").write_text("by the user\n")
    listed = json.loads(product.run("workspace", "pending", "--session", session, "--json").stdout)
    stale = product.run("workspace", "apply", "--session", session, "--digest", listed["digest"])
    assert (stale.status, stale.sentence) == (2, "It has changed since you looked; look again.")
    assert (mine / "victim").exists()
    ran = product.agree("workspace", "apply", "--session", session)
    assert (ran.status, ran.stdout) == (1, "1 applied\n"), ran
    assert "--force" in ran.stderr
    assert (mine / "notes.txt").read_text() == "by the user\n"
    assert not (mine / "victim").exists()
    assert pending(product, session)["notes.txt"]["conflict"] is True
    forced = product.agree("workspace", "apply", "--session", session, "--force")
    assert forced.status == 0, forced
    assert (mine / "notes.txt").read_text() == "agent\n"


def test_a_server_applies_what_its_session_has_waiting(stage: Stage, tmp_path: Path) -> None:
    mine = project(tmp_path)
    endpoint = stage.endpoint({"/": [shell("rm victim; echo 2 > notes.txt"), "Done."]})
    product = stage.product(endpoint)
    session, _ = ask(product, mine)
    with served(product) as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": session, "since": 0})
        assert set(pending(product, session)) == {"notes.txt", "victim"}
        shown = product.run("workspace", "diff", "--session", session)
        assert "-precious" in shown.stdout
        digests = {"victim": pending(product, session)["victim"]["digest"]}
        answer = acknowledged(socket, {"type": "apply", "paths": ["victim"], "digests": digests})
        assert (answer["done"], answer["left"]) == (1, [])
        assert product.run("workspace", "drop", "--session", session).stdout == "1 dropped\n"
    assert not (mine / "victim").exists()
    assert (mine / "notes.txt").read_text() == "one\ntwo\nthree\n"


def test_a_scratch_session_has_nothing_that_waits_and_says_what_it_has(stage: Stage) -> None:
    product = stage.product(stage.endpoint({"/": [Reply("Hello.")]}))
    answer = product.ask("Hello.")
    ran = product.run("workspace", "pending", "--session", answer.session)
    assert ran.status == 2
    assert "iact workspace log" in ran.sentence


def test_a_kill_while_changes_are_applied_is_made_good_when_the_session_is_opened_again(
    stage: Stage, tmp_path: Path
) -> None:
    mine = project(tmp_path)
    for number in range(3000):
        (mine / f"old{number}").write_text("old\n")
    work = "for i in $(seq 0 2999); do echo new > old$i; done; rm victim"
    endpoint = stage.endpoint({"/": [shell(work), "Done."]}, crashes=True)
    product = stage.product(endpoint)
    session, waiting = ask(product, mine)
    assert len(waiting) == 3001

    def changed() -> int:
        return sum(path.read_text() == "new\n" for path in mine.glob("old*"))

    listed = json.loads(product.run("workspace", "pending", "--session", session, "--json").stdout)
    with product.started("workspace", "apply", "--session", session, "--digest", listed["digest"]) as process:
        until(lambda: changed() > 0, "the first file", within=120)
        assert kill(process), "it was killed in the middle"
    assert 0 < changed() < 3000
    again = product.run("workspace", "diff", "--session", session)
    assert again.status == 0, again
    assert (changed(), (mine / "victim").exists()) == (3000, False)
    assert not [path for path in mine.iterdir() if path.name.startswith(".")], "nothing half-written is left"
    assert pending(product, session) == {}
    assert product.run("replay", session_path(product, session), "--verify").status == 0


def test_a_person_at_a_terminal_is_asked_at_the_end(stage: Stage, tmp_path: Path) -> None:
    mine = project(tmp_path)
    endpoint = stage.endpoint({"/": [shell("rm victim; echo x >> notes.txt; chmod 755 run.sh"), "Done."]})
    product = stage.product(endpoint)
    terminal = Terminal(product, "run", "--workspace", str(mine), "Go.")
    shown = terminal.until("[L]eave them for later: ")
    assert "~ notes.txt  +1 -0" in shown
    assert "- victim" in shown
    terminal.type("c")
    assert "+x" in terminal.until("[q]uit: ")
    terminal.type("y")
    terminal.until("[q]uit: ")
    terminal.type("x")
    terminal.until("[q]uit: ")
    terminal.type("n")
    assert "1 change is waiting for you." in terminal.end()
    assert (mine / "notes.txt").read_text() == "one\ntwo\nthree\nx\n"
    assert (mine / "victim").exists()
    (session,) = [journal.parent.name for journal in product.journals()]
    assert list(pending(product, session)) == ["victim"]


def test_the_answer_comes_before_the_question_and_what_git_ignores_is_one_question(
    stage: Stage, tmp_path: Path
) -> None:
    mine = project(tmp_path)
    (mine / ".gitignore").write_text("*.log\n")
    for name in ("a.log", "b.log"):
        (mine / name).write_text("old\n")
    endpoint = stage.endpoint({"/": [shell("echo x >> notes.txt; rm a.log b.log"), "All is done."]})
    terminal = Terminal(stage.product(endpoint), "run", "--workspace", str(mine), "Go.")

    shown = terminal.until("[L]eave them for later: ")
    assert "All is done." in shown
    assert "and 2 files that .gitignore names" in shown

    terminal.type("d")
    diffs = terminal.until("[L]eave them for later: ")
    assert "+x" in diffs
    assert "Not shown: 2 files that .gitignore names." in diffs
    # Before the answer, the call is shown with its command, which names it.
    question = shown.partition("All is done.")[2]
    assert "a.log" not in question + diffs

    terminal.type("c")
    assert "+x" in terminal.until("[q]uit: ")
    terminal.type("n")
    assert "And 2 files that .gitignore names:" in terminal.until("[q]uit: ")
    terminal.type("y")
    assert "1 change is waiting for you." in terminal.end()
    assert sorted(path.name for path in mine.glob("*.log")) == []
    assert (mine / "notes.txt").read_text() == "one\ntwo\nthree\n"


class Terminal:
    """A command of the product at a pseudo-terminal."""

    def __init__(self, product: Product, *arguments: str) -> None:
        master, slave = pty.openpty()
        self._master = master
        self._seen = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "iact", *arguments],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=slave, stderr=slave,
        )  # fmt: skip
        os.close(slave)

    def until(self, words: str) -> str:
        """What it shows up to these words."""
        while words not in self._seen:
            self._read()
        shown, _, self._seen = self._seen.partition(words)
        return shown

    def type(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def end(self) -> str:
        """What it shows up to its end, which must be a good one."""
        with contextlib.suppress(OSError):
            while True:
                self._read()
        assert self._process.wait(60) == 0
        os.close(self._master)
        return self._seen

    def _read(self) -> None:
        ready, _, _ = select.select([self._master], [], [], 180)
        assert ready, f"waited in vain behind: {self._seen[-400:]}"
        self._seen += os.read(self._master, 65_536).decode("utf-8", "replace").replace("\r\n", "\n")


def test_what_tools_keep_beside_the_work_is_folded_and_can_be_listed(stage: Stage, tmp_path: Path) -> None:
    """What the user's own `.gitignore` names is one line; an agent's version of it hides nothing."""
    mine = project(tmp_path)
    (mine / ".gitignore").write_text("*.log\nbuild/\n")
    work = (
        "sed -i s/one/ONE/ notes.txt; echo 'notes.txt' >> .gitignore; mkdir -p build pkg/__pycache__"
        "; for n in 1 2 3; do echo $n > build/$n.o; echo $n > $n.log; echo $n > pkg/__pycache__/$n.pyc; done"
    )
    product = stage.product(stage.endpoint({"/": [shell(work), "Done."]}))
    session, _ = ask(product, mine)

    noise = {path: row.get("noise") for path, row in pending(product, session).items()}
    assert (noise["notes.txt"], noise[".gitignore"]) == (None, None)
    assert (noise["build/1.o"], noise["1.log"], noise["pkg/__pycache__/1.pyc"]) == (
        "ignored",
        "ignored",
        "cache",
    )

    shown = product.run("workspace", "pending", "--session", session).stdout.splitlines()
    everything = product.run("workspace", "pending", "--session", session, "--all").stdout.splitlines()
    assert any(line.startswith("~ notes.txt") for line in shown)
    assert "files that .gitignore names" in shown[-1]
    assert shown[-1].endswith("--all lists them.")
    assert not [line for line in shown if "build/" in line or ".log" in line]
    assert len(everything) == len(noise)
