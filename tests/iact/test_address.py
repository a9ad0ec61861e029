"""Where a running `iact run` is reached: found while it runs, by its session, and by nothing that it left behind."""

from __future__ import annotations

from pathlib import Path

from iact.address import Address, announced, find_run

HERE = Address(url="http://127.0.0.1:1/?token=t", pid=1, started="2026-11-26T00:00:00+00:00", key="k")


def test_a_run_is_found_while_it_runs_and_its_file_is_private(tmp_path: Path) -> None:
    with announced(tmp_path, "s1", HERE):
        assert find_run(tmp_path, "s1") == HERE
        assert find_run(tmp_path, "s2") is None
        assert find_run(tmp_path, "../s1") is None
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
    assert find_run(tmp_path, "s1") is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_not_believed_and_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "run.s1.json"
    left.write_text(HERE.model_dump_json(), encoding="utf-8")
    assert find_run(tmp_path, "s1") is None
    with announced(tmp_path, "s2", HERE), announced(tmp_path, "s3", HERE):
        assert not left.exists()
        assert find_run(tmp_path, "s2") == find_run(tmp_path, "s3") == HERE
