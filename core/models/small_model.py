"""Makes a model of 135 million parameters act: the model chooses, and a grammar writes.

Left alone, a model this small invents commands. But it knows which of a few short phrases a request is about. So it
completes "The user wants the …" with one phrase of a menu ("disk usage of a directory"), and a grammar then lets it
write only commands that fit this phrase, with arguments taken from the request. The model chooses the phrase, corrected
by what it would say to a request that says nothing (contextual calibration, Zhao et al. 2021, arXiv 2102.09690):
without that, its favourite phrase wins every time. After a command ran, a grammar lets it introduce and quote the
output, so that numbers in its answers are real.

All of this is pure: messages in, grammars out (llama.cpp's GBNF). Only `embedded` uses it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.ports import ChatMessage, StaticPrompt

WANTS: Final = "The user wants"
LEAD: Final = f"{WANTS} the"
TALK: Final = f"{WANTS} some small talk. "
STRENGTH: Final = 0.85
"""How much of a phrase's prior is subtracted; 1 would be all of it. Between 0.7 and 1 it hardly matters."""

DOUBT: Final = 0.13
"""How much likelier than a task small talk must be (log probability)."""

BLANKS: Final = (
    *("Show it to me", "List them all", "What is it?", "How many are there?"),
    *("Print it", "Tell me about it", "Find it", "Which one is it?"),
)
"""Requests that say nothing: what the model chooses for them is its bias."""

MENU: Final[dict[str, tuple[str, ...]]] = {
    "disk usage of a directory": ("du -sh {path}",),
    "size of a file or directory": ("du -sh {path}",),
    "space left on the disk": ("df -h",),
    "space used by a directory": ("du -sh {path}",),
    "free disk space": ("df -h",),
    "date and time": ("date",),
    "current date": ("date",),
    "current time": ("date",),
    "current directory": ("pwd",),
    "time of day": ("date",),
    "today's date": ("date",),
    "count of lines": ("wc -l {path}",),
    "number of lines in a file": ("wc -l {path}",),
    "number of words in a file": ("wc -w {path}",),
    "number of processors": ("nproc",),
    "number of files in a directory": ("find {path} -type f | wc -l",),
    "CPU count": ("nproc",),
    "processor type": ("grep -m1 'model name' /proc/cpuinfo",),
    "kernel version": ("uname -r",),
    "Linux version": ("uname -r",),
    "operating system": ("cat /etc/os-release",),
    "distribution of Linux": ("cat /etc/os-release",),
    "files in a directory": ("ls -la {path}",),
    "directory listing": ("ls -la {path}",),
    "list of files": ("ls -la {path}",),
    "memory in use": ("free -h", "head -n 3 /proc/meminfo"),
    "free memory": ("free -h", "head -n 3 /proc/meminfo"),
    "RAM size": ("free -h", "head -n 3 /proc/meminfo"),
    "available memory": ("free -h", "head -n 3 /proc/meminfo"),
    "working directory": ("pwd",),
    "directory that we are in": ("pwd",),
    "user name": ("whoami",),
    "name of the user": ("whoami",),
    "identity of the user": ("id",),
    "largest files": ("du -a {path} | sort -n | tail",),
    "biggest files": ("du -a {path} | sort -n | tail",),
    "files sorted by size": ("ls -lS {path}",),
    "environment variables": ("env",),
    "value of a variable": ("printenv {word}",),
    "lines with a word": ("grep -n {word} {path}",),
    "word in a file": ("grep -n {word} {path}",),
    "text in a file": ("grep -n {word} {path}",),
    "search for a word": ("grep -n {word} {path}",),
    "uptime of the system": ("uptime", "cut -d ' ' -f 1 /proc/uptime"),
    "time since the system started": ("uptime", "cut -d ' ' -f 1 /proc/uptime"),
    "first lines of a file": ("head {path}",),
    "last lines of a file": ("tail {path}",),
    "end of a file": ("tail {path}",),
    "beginning of a file": ("head {path}",),
    "content of a file": ("cat {path}", "ls -la {path}"),
    "file content": ("cat {path}", "ls -la {path}"),
    "host name": ("hostname", "cat /etc/hostname"),
    "running processes": ("ps aux", "cat /proc/[0-9]*/comm"),
    "process list": ("ps aux", "cat /proc/[0-9]*/comm"),
    "Python version": ("python3 --version",),
    "version of a program": ("{word} --version",),
    "empty file": ("touch {name}",),
    "new file": ("touch {name}",),
    "new directory": ("mkdir {name}",),
    "new folder": ("mkdir {name}",),
    "result of a calculation": ("echo $(( {sum} ))",),
    "sum of numbers": ("echo $(( {sum} ))",),
    "product of numbers": ("echo $(( {sum} ))",),
    "location of a program": ("command -v {word}",),
    "files by name": ("find {path} -name {word}",),
    "permissions of a file": ("ls -l {path}",),
    "network addresses": ("hostname -I", "cat /proc/net/fib_trie"),
    "checksum of a file": ("sha256sum {path}",),
}
"""Phrases and their possible commands; the later ones are used if the first failed."""

_QUOTED_LINES: Final = 12
_QUOTED_CHARACTERS: Final = 800
_FILLER_WORDS: Final = (
    "a an and are called can do does file find for from give how i in is installed it line lines location me my "
    "named of on or path please print program search show tell text that the there this to value variable version "
    "what where which with word you your"
)
_FILLERS: Final = frozenset(_FILLER_WORDS.split())
"""Words that are not arguments."""
_FENCE: Final = re.compile(r"^(`{3,})[^`\n]*$")
_SHELL: Final = re.compile(r"\(alias `BASH`\)|^- `shell\.run`", re.MULTILINE)
_RESULT: Final = re.compile(r"(?:Result|Error) of `[^`]*`.*?(?:, exit status (\d+))?:$")
_MESSAGE: Final = re.compile(r"Message from .*:$|Intervention by the user.*:$")
_BLOCK: Final = "\n\n```BASH\n"
_BLOCK_END: Final = "\n```"
_ACTION: Final = re.compile(r"^```BASH\n(.*?)\n```", re.MULTILINE | re.DOTALL)


# --- reading the context --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """A message from the caller waits for a reaction. `shell`: whether commands can be run at all."""

    request: str
    shell: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command has ended. `status`: None if it did not complete; `tried`: commands since the request.

    `phrase`: the phrase of the menu that the first of them came from, or "".
    """

    request: str
    phrase: str
    tried: tuple[str, ...]
    status: int | None
    output: str


def read(messages: Sequence[ChatMessage], examples: int) -> Task | Outcome:
    """What the newest message of a context asks for. `examples`: how many messages are layer 1."""
    own = messages[examples:]
    shell = any(_SHELL.search(message.content) for message in own if message.role == "user")
    last = _labelled(own[-1].content)
    request, age = _newest_request(own)
    for label, content in reversed(last):
        if _MESSAGE.match(label):
            break
        if (match := _RESULT.match(label)) or label.endswith(" did not complete."):
            replies = [message.content for message in own[age:] if message.role == "assistant"]
            tried = tuple(command for reply in replies for command in _ACTION.findall(reply))
            phrase = next((found for reply in replies if (found := phrase_of(reply))), "")
            status = int(match.group(1) or 0) if match else None
            return Outcome(request, phrase, tried, status, content)
    return Task(request, shell)


def _newest_request(own: Sequence[ChatMessage]) -> tuple[str, int]:
    """The newest message from the caller, and its index."""
    for index in range(len(own) - 1, -1, -1):
        if own[index].role == "user":
            found = [content for label, content in _labelled(own[index].content) if _MESSAGE.match(label)]
            if found:
                return found[-1], index
    return own[-1].content, len(own) - 1


def _labelled(text: str) -> list[tuple[str, str]]:
    """For each line outside of fences: the line, and the fenced content after it or ""."""
    found: list[tuple[str, str]] = []
    fence, body = "", list[str]()
    for line in text.split("\n"):
        if fence:
            if line == fence:
                found[-1] = (found[-1][0], "\n".join(body))
                fence = ""
            else:
                body.append(line)
        elif (match := _FENCE.match(line)) and found:
            fence, body = match.group(1), []
        elif line.strip():
            found.append((line, ""))
    return found


def phrase_of(reply: str) -> str:
    """The phrase of the menu at the beginning of `reply`, or ""."""
    if not reply.startswith(f"{LEAD} "):
        return ""
    phrase = reply.removeprefix(f"{LEAD} ").split("\n", 1)[0].rstrip(":")
    return phrase if phrase in MENU else ""


# --- grammars ---------------------------------------------------------------------------------------


def literal(text: str) -> str:
    """`text` as a terminal of the grammar."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def one_of(texts: Iterable[str]) -> str:
    """Any of `texts`."""
    return "(" + " | ".join(literal(text) for text in dict.fromkeys(texts)) + ")"


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """How a reply is written: `begin` is given, the model continues under `grammar`, `end` is appended."""

    grammar: str
    begin: str = ""
    end: str = ""


def talking() -> ReplyForm:
    """A reply that runs nothing."""
    sentence = "[A-Z] [^`\\n(){}\\[\\]#.!?]{1,120} [.!?]"
    return ReplyForm(f'root ::= {literal(TALK)} sentence (" " sentence)?\nsentence ::= {sentence}')


def pointing() -> ReplyForm:
    """The first step: what does the user want?"""
    wants = [f" the {phrase}\n" for phrase in MENU] + [" some small talk\n"]
    return ReplyForm(f"root ::= {one_of(wants)}", begin=WANTS)


def commanding(phrase: str, request: str, tried: Sequence[str] = ()) -> ReplyForm | None:
    """A reply with one command that fits `phrase`, the first one that was not `tried`; None if there is none."""
    left = MENU.get(phrase, ())[len(tried) :]
    if not left:
        return None
    return ReplyForm(
        f"root ::= {_command(left[0], request)} {literal(_BLOCK_END)}", begin=f"{LEAD} {phrase}:{_BLOCK}"
    )


def answering(outcome: Outcome) -> ReplyForm:
    """The reply that reports the output and quotes it: the model never writes a number of its own."""
    quoted = _quoted(outcome.output)
    if outcome.status is None:
        said = literal("The command did not complete, so I can not answer this.")
    elif outcome.status:
        said = literal(f"The command failed with exit status {outcome.status}" + (":" if quoted else "."))
    elif not quoted:
        said = literal("Done: the command ended well and printed nothing.")
    else:
        paths = [f" ({word})" for word in _tokens(outcome.request) if _is_path(word)]
        said = f"{one_of(['This is what I found about the ', 'Here is the result for the '])} {literal(outcome.phrase or 'result')}"
        said += f" {one_of(['', *paths])} {literal(':')}"
    return ReplyForm(f"root ::= {said}", end=quoted)


def _quoted(output: str) -> str:
    lines = output.strip("\n").split("\n")
    shown = [line.rstrip() for line in lines[:_QUOTED_LINES]]
    text = "\n".join(shown)[:_QUOTED_CHARACTERS].rstrip()
    if not text:
        return ""
    more = "\n…" if len(lines) > _QUOTED_LINES or len(text) == _QUOTED_CHARACTERS else ""
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"\n\n{fence}\n{text}{more}\n{fence}"


def _command(template: str, request: str) -> str:
    """A command's grammar; each {placeholder} becomes a choice among parts of the request."""
    pieces = re.split(r"\{(\w+)\}", template)
    choices = {"path": _paths, "name": _names, "word": _words, "sum": _sums}
    return " ".join(
        choices[piece](request) if index % 2 else literal(piece)
        for index, piece in enumerate(pieces)
        if piece
    )


def _tokens(request: str) -> Iterator[str]:
    """The words of a request without the punctuation around them."""
    for word in request.split():
        if word := word.strip(",;:?!\"'`()").rstrip("."):
            yield word


def _is_path(word: str) -> bool:
    return "/" in word or "~" in word or re.fullmatch(r"[\w-]*\.\w+", word) is not None


def _paths(request: str) -> str:
    return one_of([shlex.quote(word) for word in _tokens(request) if _is_path(word)] or ["."])


def _names(request: str) -> str:
    words = list(_tokens(request))
    return one_of(
        [shlex.quote(word) for word in words if _is_path(word)] or map(shlex.quote, words[1:] or ["new"])
    )


def _words(request: str) -> str:
    words = [word for word in _tokens(request) if not word.startswith("/")]
    telling = [word for word in words if word.lower() not in _FILLERS or (word.isupper() and len(word) > 1)]
    return one_of(map(shlex.quote, telling or words or ["x"]))


def _sums(request: str) -> str:
    numbers = re.findall(r"\d+", request)[:6] or ["1"]
    return literal(numbers[0]) + "".join(
        f" {one_of([' + ', ' - ', ' * ', ' / '])} {literal(number)}" for number in numbers[1:]
    )


# --- layer 1 ----------------------------------------------------------------------------------------

_SYSTEM: Final = (
    "You are a helpful assistant with a Linux shell. You answer a task by running one short bash command, and "
    "then you tell the user the result. You answer small talk with a short sentence."
)


def _request(text: str) -> ChatMessage:
    return ChatMessage("user", f"Message from the user:\n```\n{text}\n```")


def _task(text: str, phrase: str, command: str, output: str, answer: str, number: int) -> list[ChatMessage]:
    head = f"Result of `BASH` (only you see this), kept as $run_{number}, exit status 0:"
    return [
        _request(text),
        ChatMessage("assistant", f"{LEAD} {phrase}:\n\n```BASH\n{command}\n```"),
        ChatMessage("user", f"{head}\n```\n{output}\n```"),
        ChatMessage("assistant", f"{answer}:\n\n```\n{output}\n```" if output else answer),
    ]


def _talk(text: str, answer: str) -> list[ChatMessage]:
    return [_request(text), ChatMessage("assistant", TALK + answer)]


STATIC: Final = StaticPrompt(
    system=_SYSTEM,
    examples=(
        *_task(
            "Which shells are installed?", "installed shells", "cat /etc/shells", "/bin/sh\n/bin/bash",
            "These are the installed shells", 1,
        ),
        *_talk("Nice to meet you", "Nice to meet you too! I can run commands for you. What shall I look up?"),
        *_task(
            "Sort the names in names.txt", "sorted lines of a file", "sort names.txt", "Ada\nBob",
            "These are the sorted lines", 2,
        ),
        *_talk("You are funny", "Thank you! What shall I do for you next?"),
        *_task(
            "Make run.sh executable", "executable file", "chmod +x run.sh", "",
            "Done: the command ended well and printed nothing.", 3,
        ),
        *_talk("Good night, see you tomorrow", "Good night! I am here when you need me."),
        *_task(
            "Compare a.txt with b.txt", "differences between two files", "diff a.txt b.txt", "2c2\n< x\n> y",
            "These are the differences", 4,
        ),
        *_task(
            "What type of file is /bin/sh?", "type of a file", "file /bin/sh", "/bin/sh: symbolic link to dash",
            "This is the type of the file", 5,
        ),
    ),
)  # fmt: skip
"""The static prompt that makes the model act; none of its examples is on the menu."""
