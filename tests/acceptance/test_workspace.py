"""A session's files through the product: versions after each call that wrote, compared, restored, and forked."""

from __future__ import annotations

import json

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.test_scenes import Spoken, served, shell, speak


def result(records: list[Record], number: int) -> Record:
    return [one for one in records if one.kind == "result"][number]


def test_files_are_kept_after_each_call_that_wrote_and_come_back(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                shell("echo one > a; git init -q . 2>/dev/null; mkdir d"),
                shell("cat a"),
                shell("echo two > a; rm -r d", "echo three > b"),
                "Written.",
                "I see.",
            ]
        }
    )
    product = stage.product(endpoint)
    answer = product.ask("Write.")
    versions = [one.text("version") for one in answer.records if one.kind == "result"]
    assert versions[1] == "", "it only looked"
    assert len({versions[0], versions[2], versions[3]}) == 3

    listed = json.loads(product.run("workspace", "log", "--session", answer.session, "--json").stdout)
    assert [row["version"] for row in listed] == [versions[0], versions[2], versions[3]]
    first = result(answer.records, 0).n
    patch = product.run("workspace", "diff", "--session", answer.session, str(first), versions[2][:10])
    assert "-one\n+two\n" in patch.stdout
    assert "+three" not in patch.stdout

    restored = product.run("workspace", "restore", "--session", answer.session, str(first))
    assert restored.status == 0, restored
    assert (answer.workspace / "a").read_text() == "one\n"
    assert (answer.workspace / "d").is_dir()
    assert not (answer.workspace / "b").exists()
    product.ask("What now?", session=answer.session)
    newest = endpoint.requests[-1].messages[-1][1]
    assert "The user put the files in the workspace back" in newest

    unknown = product.run("workspace", "restore", "--session", answer.session, "ffffffffff")
    assert (unknown.status, unknown.stderr) == (
        2,
        "iact: In this session no version begins with 'ffffffffff'.\n",
    )


def test_a_fork_begins_with_the_files_as_they_were(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [shell("echo one > a"), shell("echo two > a"), "Written."]})
    product = stage.product(endpoint)
    answer = product.ask("Write.")
    at = result(answer.records, 0).n
    made = json.loads(product.run("journal", "fork", str(answer.journal), "--at", str(at), "--json").stdout)
    assert made["workspace"] == "version"
    folder = product.data / "sessions" / made["session"]
    assert (folder / "workspace" / "a").read_text() == "one\n"
    assert (answer.workspace / "a").read_text() == "two\n"
    back = product.run("workspace", "restore", "--session", made["session"], str(at))
    assert back.status == 0, back


def test_a_server_restores_the_files_of_its_session(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": [shell("echo one > a", "echo two > a"), "Written."]})
    product = stage.product(endpoint)
    with served(product) as server:
        spoken: Spoken = speak(product, server, "Write.")
        spoken.wait_for("reply", "/")
        n = str(result(spoken.records(), 0).n)
        ran = product.run("workspace", "restore", "--session", spoken.session, n)
        assert ran.status == 0, ran
        record = spoken.records()[int(ran.stdout) - 1]
        assert (record.kind, record.text("op")) == ("control", "restore")
        assert (spoken.workspace / "a").read_text() == "one\n"
