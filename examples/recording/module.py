"""An agent writes a module, reads why it doesn't start and fixes it. Another agent then uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

QUESTION: Final = (
    "Suppliers send us lists of article numbers (EAN-13), and often a digit is wrong. I need something that "
    "checks such a number and, if one digit is wrong or two neighbours are swapped, says what it may have been. We'll "
    "need it again, so make it a tool."
)

BODY: Final = '''\

module = Module("ean", "Checks EAN-13 article numbers and suggests corrections.", keywords=["ean", "article", "barcode", "gtin"])


def digit(body: str) -> str:
    """The check digit of the first twelve digits."""
    return str(-sum(int(one) * (3 if at % 2 else 1) for at, one in enumerate(body)) % 10)


def right(number: str) -> bool:
    return len(number) == 13 and number.isdecimal() and digit(number[:12]) == number[12]


@module.function(impact=0, summary="Check an article number.")
def check(number: str) -> str:
    """number: 13 digits; spaces and dashes are left out. Says whether the check digit is right.

    ```ean.check number="4006381333931"
    ```
    """
    plain = re.sub(r"[ -]", "", number)
    return f"{plain}: {'right' if right(plain) else 'wrong'}"


@module.function(impact=0, summary="Suggest what a wrong article number may have been.")
def suggest(number: str, prefix: str = "") -> str:
    """Numbers that become right when two neighbours are swapped, then those with one digit changed.
    prefix: only those that begin with it, such as the supplier's own.

    ```ean.suggest number="4006381333391" prefix=4006381
    ```
    """
    plain = re.sub(r"[ -]", "", number)
    swapped = {plain[:at] + plain[at + 1] + plain[at] + plain[at + 2:] for at in range(len(plain) - 1)} - {plain}
    changed = {plain[:at] + one + plain[at + 1:] for at in range(len(plain)) for one in "0123456789"}
    found = [f"{one} (two swapped)" for one in sorted(swapped) if right(one) and one.startswith(prefix)]
    found += [f"{one} (one changed)" for one in sorted(changed - swapped) if right(one) and one.startswith(prefix)]
    return "\\n".join(found) or "Nothing near it is right."
'''

FIRST: Final = f"I'll write it as a module, so that it stays.\n\n~~~DEPLOY name=ean\nfrom ext_modules.sdk import Module\n{BODY}~~~\n"

TRY: Final = """\
It starts. Does it do what it should? One number that is right, and the same with two digits swapped.

```ean.check number="4006381333931"
```

```ean.check number="4006381339331"
```

```ean.suggest number="4006381339331" prefix=4006381
```
"""

MENDED: Final = (
    "It starts, but `re` is not imported; the stack trace says so. I deploy it anew.\n\n"
    f"~~~DEPLOY name=ean\nimport re\n\nfrom ext_modules.sdk import Module\n{BODY}~~~\n"
)

AGAIN: Final = TRY.replace("It starts. Does it do what it should?", "Once more.")

READY: Final = """\
The tool is there: `ean.check` and `ean.suggest`. I tried them with a right number and with one whose digits were swapped, and
the right one was among the suggestions. My first version lacked an import; what counts is the second one.

It is kept in your catalogue. Until you approve it (`iact module approve ean`) it runs contained: without network,
secrets, or access to your files. Shall I check a list?
"""

LIST: Final = """\
Yes, this came today; the supplier's numbers begin with 4006381:

```csv
article,ean
pencil,4006381333931
marker,4006381333627
eraser,4006381336334
ruler,4006381339658
```
"""

HAND_OVER: Final = """\
That is a job of its own; I give the list to somebody by name, and they find the tool.

```CALL auditor role="an auditor of suppliers' lists"
Check each number in $code_1 with the module `ean`, and find out what the wrong ones may have been. Our supplier's prefix is
4006381.
```
"""

CHECKS: Final = """\
Four numbers, four checks.

```ean.check number="4006381333931"
```

```ean.check number="4006381333627"
```

```ean.check number="4006381336334"
```

```ean.check number="4006381339658"
```
"""

ASKED: Final = """\
Two of them are wrong.

```ean.suggest number="4006381336334" prefix=4006381
```

```ean.suggest number="4006381339658" prefix=4006381
```
"""

REPORT: Final = """\
Two of four are right, two are not:

| article | as sent | | most likely |
|---|---|---|---|
| pencil | 4006381333931 | right | |
| marker | 4006381333627 | right | |
| eraser | 4006381336334 | wrong | 4006381333634, two neighbours swapped |
| ruler | 4006381339658 | wrong | 4006381333658, one digit changed |

For both there are other numbers that would be right as well; I took the ones that begin with 4006381333, as the rest of the
list does. That is a guess, so ask the supplier.
"""

OUTCOME: Final = """\
Two of the four numbers are wrong:

- **eraser** 4006381336334: probably **4006381333634**, with two neighbours swapped
- **ruler** 4006381339658: probably **4006381333658**, with one digit changed

Several numbers would fit each; these two go with the rest of the list. Please have the supplier confirm them.
"""

SCRIPT: Final = {
    "/": [FIRST, TRY, MENDED, AGAIN, READY, HAND_OVER, OUTCOME],
    "/auditor": [CHECKS, ASKED, REPORT],
}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT) as person:
        person.say(QUESTION)
        person.answered()
        ran = person.product.agree("module", "approve", "ean")
        assert ran.status == 0, ran
        person.say(LIST)
        person.answered(2)
        return person.folder
