"""The hub's protocol, against a server that speaks it: what a repository holds, which file is meant, and its bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.errors import ModelUnreachable, UsageError
from iact.models import download
from iact.models.download import FetchProgress, HubDownload, fetch_from_hub
from iact.models.hub import HubSource, look_up
from iact.models.weights import partial_path
from tests.iact.models.hub_server import COMMIT, Hub, gguf, hub

CONTENT = gguf(weights=random.Random(7).randbytes(400_000))
REPOSITORY = "someone/Tiny-GGUF"


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub with one repository of one model."""
    with hub() as made:
        monkeypatch.setenv("HF_ENDPOINT", made.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
        made.repositories[REPOSITORY] = {"README.md": b"# Tiny", "tiny-q4_k_m.gguf": CONTENT}
        yield made


def silent(progress: FetchProgress) -> None:
    pass


def target(file_name: str, tmp_path: Path) -> HubDownload:
    return HubDownload(look_up(HubSource.of(f"{REPOSITORY}:{file_name}")), tmp_path / "models" / "it.gguf")


def test_the_only_model_of_a_repository_is_found_with_its_facts(there: Hub) -> None:
    found = look_up(HubSource.of(REPOSITORY))
    assert (found.repository, found.revision, found.file) == (REPOSITORY, COMMIT, "tiny-q4_k_m.gguf")
    assert (found.size, found.licence) == (len(CONTENT), "apache-2.0")
    assert found.sha256 == there.digest(REPOSITORY, found.file)
    assert found.url == f"{there.url}/{REPOSITORY}/resolve/{COMMIT}/tiny-q4_k_m.gguf"


def test_a_hub_that_lists_no_digests_says_them_where_it_redirects(there: Hub) -> None:
    there.lists_digests = False
    found = look_up(HubSource.of(REPOSITORY))
    assert (found.size, found.sha256) == (len(CONTENT), there.digest(REPOSITORY, found.file))
    assert there.asked[-1][0] == "HEAD"
    assert there.ranges() == [], "nothing is downloaded for that"


def test_of_several_one_is_named_whole_or_in_part(there: Hub) -> None:
    there.repositories[REPOSITORY] |= {
        "tiny-q8_0.gguf": b"GGUF", "mmproj-tiny.gguf": b"GGUF", "in/tiny-f16.gguf": b"GGUF",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"holds 3 GGUF files.*tiny-q4_k_m.gguf.*tiny-q8_0.gguf"):
        look_up(HubSource.of(REPOSITORY))
    assert look_up(HubSource.of(f"{REPOSITORY}:Q8_0")).file == "tiny-q8_0.gguf"
    assert look_up(HubSource.of(f"{REPOSITORY}:in/tiny-f16.gguf")).file == "in/tiny-f16.gguf"
    with pytest.raises(UsageError, match=r"holds 2 GGUF files like tiny-q"):
        look_up(HubSource.of(f"{REPOSITORY}:tiny-q"))
    with pytest.raises(UsageError, match=r"no file q2_k; it has tiny-q4_k_m.gguf"):
        look_up(HubSource.of(f"{REPOSITORY}:q2_k"))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"model.safetensors": b"x"}, "holds no GGUF file"),
        ({"big-00001-of-00003.gguf": b"x"}, "several parts"),
        ({"../../tiny.gguf": b"x"}, "holds no GGUF file"),
    ],
)
def test_what_is_no_whole_model_is_refused(there: Hub, files: dict[str, bytes], says: str) -> None:
    there.repositories[REPOSITORY] = files
    with pytest.raises(UsageError, match=says):
        look_up(HubSource.of(REPOSITORY))


@pytest.mark.parametrize(
    "text", ["", "alone", "a/b/c", "a/b:", "../b", "a/b:../c", "a/b:/etc/x", "a b/c", "a/b:x\ny"]
)
def test_what_names_no_model(text: str) -> None:
    if text == "a/b:":
        assert HubSource.of(text) == HubSource("a/b")
        return
    with pytest.raises(UsageError, match=r"write hub:OWNER/NAME"):
        HubSource.of(text)


def test_a_repository_that_is_not_there(there: Hub) -> None:
    with pytest.raises(UsageError, match="no repository someone/Else"):
        look_up(HubSource.of("someone/Else"))


def test_a_repository_behind_an_agreement_needs_a_token(there: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    there.gated.add(REPOSITORY)
    with pytest.raises(UsageError, match="accept its terms"):
        look_up(HubSource.of(REPOSITORY))
    monkeypatch.setenv("HF_TOKEN", "mine")
    assert look_up(HubSource.of(REPOSITORY)).size == len(CONTENT)


def test_a_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnreachable, match=r"127.0.0.1:9 can't be reached.*HF_ENDPOINT"):
        look_up(HubSource.of(REPOSITORY))


def test_a_file_comes_over_a_redirection_and_the_token_goes_to_the_hub_alone(
    there: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "mine")
    wanted = target("q4", tmp_path)
    told: list[FetchProgress] = []
    fetch_from_hub(wanted, told.append)
    assert wanted.path.read_bytes() == CONTENT
    assert [one.phase for one in told] == ["hub", "hub", "checking", "ready"]
    sent = {path.startswith("cdn:"): headers.get("Authorization") for _, path, headers in there.asked}
    assert sent == {False: "Bearer mine", True: None}
    fetch_from_hub(wanted, silent)
    assert len(there.ranges()) == 1, "what is there is not fetched again"


def test_a_download_goes_on_where_it_broke_off(there: Hub, tmp_path: Path) -> None:
    wanted = target("q4", tmp_path)
    there.breaks.append(150_000)
    with pytest.raises(ModelUnreachable, match="can't be downloaded"):
        fetch_from_hub(wanted, silent)
    begun = partial_path(wanted.path).stat().st_size
    assert 0 < begun <= 150_000
    fetch_from_hub(wanted, silent)
    assert wanted.path.read_bytes() == CONTENT
    assert there.ranges() == ["bytes=0-", f"bytes={begun}-"]


def test_other_bytes_than_were_announced_are_deleted(there: Hub, tmp_path: Path) -> None:
    there.announced["tiny-q4_k_m.gguf"] = CONTENT[:-1] + b"?"
    wanted = target("q4", tmp_path)
    with pytest.raises(ModelUnreachable, match="not the expected model"):
        fetch_from_hub(wanted, silent)
    assert not wanted.path.exists()
    assert not partial_path(wanted.path).exists()


def test_a_disk_that_is_too_small_is_told_before_the_first_byte(
    there: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "free_disk", lambda path: 100_000)
    with pytest.raises(ModelUnreachable, match=r"needs 0 MB more.*IACT_CACHE"):
        fetch_from_hub(target("q4", tmp_path), silent)
    assert there.ranges() == []
