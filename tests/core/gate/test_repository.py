"""What git runs when it reads a repository whose configuration somebody else made, and what the classifier says of it."""

from __future__ import annotations

import pytest

from iact.core.gate.shell import judge_script
from tests.core.gate.jail import Jail, folder_for_jail, need_bubblewrap
from tests.rounds import LONG
from tests.snapshot import differences

SETUP = r"""
mkdir home r && cd r && git init -q . && mkdir src
echo one > a.txt && echo two > src/b.txt && git add . && git commit -qm one && git tag v1 && git tag -am t t1
signed=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin)
git update-ref HEAD "$signed"
echo more >> a.txt && git commit -qam two && echo again >> a.txt && git stash -q && echo third >> a.txt
git remote add origin 'ext::touch ran-transport'
set_to() { git config "$1" "touch ran-$1; cat; false"; }
for each in core.fsmonitor core.pager core.editor core.sshCommand diff.external diff.x.textconv diff.x.command \
    filter.x.clean filter.x.smudge filter.x.process gpg.program gpg.ssh.program core.alternateRefsCommand \
    uploadpack.packObjectsHook trailer.x.cmd man.x.cmd browser.x.cmd interactive.diffFilter credential.helper; do
    set_to "$each"
done
git config man.viewer x && git config help.format man
git config log.showSignature true && git config format.pretty '%G?' && git config branch.sort committerdate
git config tag.sort taggerdate && git config diff.submodule log && git config status.submoduleSummary true
git config alias.status '!touch ran-alias' && git config alias.log '!touch ran-alias'
git config core.repositoryformatversion 1 && git config extensions.partialClone origin
git config remote.origin.promisor true && git config protocol.ext.allow always
mkdir hooks && printf '#!/bin/sh\ntouch ran-hook\n' > hooks/post-index-change && chmod +x hooks/post-index-change
git config core.hooksPath "$PWD/hooks"
echo '*.txt diff=x filter=x' > .git/info/attributes
cd .. && cp -a r missing && find missing/.git/objects -type f -delete && rm -f r/ran-* missing/ran-*
"""
READS = """\
status · status --short · diff · diff --cached · diff HEAD~1 HEAD · diff --no-ext-diff --no-textconv · log · log -p
log --oneline · log -1 --oneline --no-show-signature --no-patch · log --oneline --no-show-signature -s --all
log -p --oneline --no-show-signature --no-ext-diff --no-textconv --submodule=short · log --stat
log --stat --format=%s --no-show-signature --no-ext-diff --no-textconv --submodule=short · log --format=%G? --no-show-signature -s
show HEAD · show HEAD:a.txt · show HEAD --format=%s --no-show-signature --no-ext-diff --no-textconv --submodule=short
branch · branch -a · branch -vv · branch --show-current · branch --merged · remote -v · remote get-url origin · remote
rev-parse HEAD · rev-parse --show-toplevel · rev-parse --short HEAD · rev-parse HEAD~1 · rev-parse --verify HEAD^{commit}
blame a.txt · blame --no-textconv HEAD -- a.txt · ls-files · ls-files -m · ls-files -s · tag · tag -l · tag -n · stash list
stash list --no-show-signature --oneline · stash show · config --get core.pager · config --list · shortlog -sn HEAD
describe --tags · describe --always · describe --dirty · rev-list --count HEAD · rev-list --all --objects · ls-tree -r HEAD
cat-file -p HEAD · cat-file -t HEAD · cat-file -p HEAD:a.txt · merge-base HEAD HEAD~1 · name-rev HEAD · for-each-ref
for-each-ref --format=%(contents) · show-ref · show-ref --heads · count-objects -v · diff-tree -p HEAD · diff-index HEAD
whatchanged · cherry HEAD HEAD~1 · grep one · grep one HEAD · check-ignore a.txt · check-attr -a a.txt · reflog
reflog --oneline --no-show-signature -s · version · var GIT_EDITOR · worktree list · submodule status · notes list · help -a
help log · help git"""
COMMANDS = [
    f"{before}git -C {repository} {read}"
    for read in READS.replace("\n", " · ").split(" · ")
    for before in ("", "GIT_ALLOW_PROTOCOL=none ")
    for repository in ("r", "missing")
]

NOTED = ["changed: missing/.git", "changed: missing/.git/config"]
"""Where objects are missing, git notes with which filter it would fetch them, even if it may not fetch. Where a call
may only look, that fails, and git goes on."""


LOOKS = [command for command in COMMANDS if judge_script(command).impact(live=True) == 0]
TRIED = COMMANDS if LONG else [one for n, one in enumerate(COMMANDS) if one in LOOKS or n % 5 == 0]


@pytest.fixture(scope="module")
def ran() -> dict[str, list[str]]:
    """What each look, and in a long run each command, made the repository's configuration do."""
    need_bubblewrap()
    with folder_for_jail() as folder:
        jail = Jail(folder, SETUP)
        found = [differences(jail.before, after) for after in jail.run(TRIED)]
        return dict(zip(TRIED, found, strict=True))


def test_what_counts_as_a_look_runs_nothing(ran: dict[str, list[str]]) -> None:
    assert len(LOOKS) > 60
    assert {command: ran[command] for command in LOOKS if ran[command] and ran[command] != NOTED} == {}
    assert all("missing" in command for command in LOOKS if ran[command])


def test_the_repository_is_hostile_enough_to_tell(ran: dict[str, list[str]]) -> None:
    marks = {one.rpartition("/")[2] for found in ran.values() for one in found if "/ran-" in one}
    assert marks >= {
        "ran-core.fsmonitor",
        "ran-diff.x.command",
        "ran-diff.x.textconv",
        "ran-filter.x.process",
        "ran-transport",
    }


def test_it_can_be_looked_at_all_the_same() -> None:
    def look(read: str) -> bool:
        return judge_script(f"GIT_ALLOW_PROTOCOL=none git {read}").impact(live=True) == 0

    assert look("log -10 --oneline --no-show-signature --no-patch")
    assert look("show HEAD --format=%s --no-show-signature --no-ext-diff --no-textconv --submodule=short")
    assert look("branch -a")
    assert look("cat-file -p HEAD:a.txt")
    assert not look("status")
