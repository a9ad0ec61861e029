"""Programs that write: what they create, and what they overwrite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iact.core.gate.shell import paths
from iact.core.gate.shell.effects import Effect
from iact.core.gate.shell.handlers import Runner, shown
from iact.core.gate.shell.options import parse
from iact.core.gate.shell.words import GAP, GLOB, Word


def written(runner: Runner, what: str, targets: Sequence[Word], effect: Effect) -> None:
    """Note writes to `targets`; worse than `effect` if a target is code or a secret."""
    for word in targets:
        if word.known is not None:
            runner.writes(word.known)
        if paths.network(word.text):
            runner.find("send", f"{what}: {shown([word])}")
        elif paths.secret(word.text) or paths.code(word.text):
            runner.find("authority", f"{what}, where more than data is kept: {shown([word])}")
    runner.find(effect, f"{what}: {shown(targets)}")


def make(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge programs that make something and overwrite nothing."""
    entries = {
        "mkdir": "+ -pv --parents --verbose",
        "touch": "+ -acm -d: -r: -t: --date= --reference= --no-create",
        "mktemp": "+ -dqut -p: --directory --suffix= --tmpdir --tmpdir= --dry-run",
    }
    operands = parse(entries[name]).operands(arguments)

    if operands is None:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
    elif any(word.loose for word in operands):
        runner.find("unknown", f"makes a file that is not known: {name} {shown(arguments)}")
    else:
        written(runner, name, operands, "modify")


def copy(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`cp` and `mv` overwrite existing files. `cp -n` does not; of contradicting options, the last counts."""
    operands = parse("+ -aLPRrfiuvpnxHTd -t: --no-clobber --recursive --archive --parents").operands(
        arguments
    )
    if operands is None:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
        return

    options = [word.text for word in arguments if word.text.startswith("-") and len(word.text) > 1]
    targets = operands[-1:]
    overwrites = name != "cp" or not _keeps_existing(options) or any(word.loose for word in operands)

    # Links are copied as links: a place where overwriting a file is free must not lead elsewhere.
    copies_links = any(re.fullmatch(r"-\w*[RraP]\w*|--recursive|--archive", option) for option in options)
    if copies_links and any(paths.passing(word.text) for word in targets):
        overwrites = True

    written(runner, name, targets, "destroy" if overwrites else "modify")


def _keeps_existing(options: Sequence[str]) -> bool:
    """Whether `cp` with these options leaves existing files as they are."""
    asked_to = any(re.fullmatch(r"-\w*n\w*|--no-clobber", option) for option in options)
    understood = all(
        re.fullmatch(r"-[nRrapvT]+|--no-clobber|--recursive|--archive|--parents", option)
        for option in options
    )
    return asked_to and understood


def link(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge `ln`. A link is a second name, by which later commands reach a file that they don't name."""
    operands = parse("-srvnTL --symbolic --relative").operands(arguments)
    if operands is not None and all(word.known is not None for word in operands):
        written(runner, name, operands, "authority")
        return

    may_replace = any("f" in word.text[:3] for word in arguments)
    runner.find("destroy" if may_replace else "unknown", f"ln {shown(arguments)}")


def tee(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge `tee`, which writes over files unless it appends."""
    operands = parse("-ai --append --ignore-interrupts").operands(arguments)
    if operands is None:
        runner.find("unknown", f"options of tee that are not understood: {shown(arguments)}")
        return

    appends = any(word.known in ("-a", "--append", "-ai", "-ia") for word in arguments)
    for word in operands:
        write(runner, word, appends=appends)


def write(runner: Runner, word: Word, *, appends: bool) -> None:
    """Judge a file opened for writing, by a redirection or `tee`."""
    if paths.harmless(word.text):
        return
    if paths.opened(word.text):
        runner.reopens()
        return

    if word.known is None:
        effect: Effect = "unknown" if word.loose else "destroy"
        runner.find(effect, f"writes to a file that is not known: {shown([word])}")

    what = "appends to" if appends else "writes over"
    loses_nothing = appends or paths.passing(word.text)
    written(runner, what, [word], "modify" if loses_nothing else "destroy")


def dd(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge `dd`, which only reads if its output goes on, or nowhere."""
    for word in arguments:
        if word.known == "of=/dev/null":
            continue
        if word.loose or not re.match(r"(?:if|bs|count|skip|ibs|obs|status|iflag|conv)=", word.text):
            runner.find("destroy", f"dd {shown(arguments)}")
            return


def pack(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """gzip and its relatives replace their input, unless they write to the output or only test.

    To some of them the last of `-t`, `-l` and `-d` counts, so the first two are accepted only without the third.
    """
    given = {word.text for word in arguments if word.text.startswith("-")}
    letters = set("".join(option for option in given if not option.startswith("--")))
    to_output = "c" in letters or "--stdout" in given
    tests = (letters & {"t", "l"} or given & {"--list", "--test"}) and "d" not in letters

    understood = all(
        re.fullmatch(r"-[cdltfkqv0-9]+|--stdout|--list|--test|[^-].*|-", word.text) for word in arguments
    )
    only_reads = (to_output or tests) and understood
    if not only_reads or any(word.loose for word in arguments):
        runner.find("destroy", f"{name} {shown(arguments)}")


_TAR_LISTS: Final = re.compile(
    r"-?[vzjJa]*t[vzjJa]*f?|[vzjJa]*f[vzjJa]*t[vzjJa]*|[vzjJa]*t[vzjJa]*f[vzjJa]*|--list"
)
"""The first word of a `tar` that lists. Without a dash, the letter that takes the archive's name may be anywhere."""


def tar(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge `tar`, which only reads if it lists an archive that is on this machine."""
    first = (arguments[0].known or "") if arguments else ""
    rest = parse("-vzjJa -f: -C: --verbose --wildcards --file= --directory=").operands(arguments[1:])

    # An archive's name with a colon before its first slash names another machine.
    remote = any(re.match(rf"[^/]*[:{GAP}{GLOB}]", word.text) for word in arguments)
    understood = rest is not None and not remote
    if understood and _TAR_LISTS.fullmatch(first):
        return

    writes = understood and re.fullmatch(r"-?[cxrua][a-zA-Z]*", first)
    runner.find("destroy" if writes else "unknown", f"tar {shown(arguments)}")


def unzip(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge `unzip`, which only reads if it lists, tests or prints."""
    looks = arguments and arguments[0].known in ("-l", "-v", "-t", "-Z", "-lv", "-p", "-c", "-Z1")
    if not looks or any(word.text.startswith("-") or word.loose for word in arguments[1:]):
        runner.find("destroy", f"unzip {shown(arguments)}")
