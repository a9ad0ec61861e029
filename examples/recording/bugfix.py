"""A failing test, a fix, a green run: two files come with the question, and a reviewer checks the result."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed

QUESTION: Final = '''\
Customers pay in instalments, and at times a cent is missing. Here is the code, and the test that somebody wrote for it.
Please find out why, mend it, and show me what you changed.

```python
"""instalments.py: divides an amount among several payments."""

from decimal import Decimal


def instalments(total: Decimal, count: int) -> list[Decimal]:
    """`count` payments that are as equal as they can be and add up to `total`."""
    part = round(total / count, 2)
    return [part] * count
```

```python
"""test_instalments.py"""

import unittest
from decimal import Decimal

from instalments import instalments


class Sums(unittest.TestCase):
    def test_even(self):
        self.assertEqual(instalments(Decimal("90.00"), 3), [Decimal("30.00")] * 3)

    def test_nothing_is_lost(self):
        self.assertEqual(sum(instalments(Decimal("100.00"), 3)), Decimal("100.00"))


if __name__ == "__main__":
    unittest.main()
```
'''

RUN: Final = """\
I put the files down as you gave them, the code twice so that we can compare later, and run the test.

```files.write path=instalments.py content=$code_1
```

```files.write path=before/instalments.py content=$code_1
```

```files.write path=test_instalments.py content=$code_2
```

```shell.run
python3 -m unittest -v test_instalments 2>&1
```
"""

WHY: Final = """\
`100.00 / 3` is rounded to 33.33, three times that is 99.99: each part is rounded by itself, and nobody looks after the
rest. Before I change anything, how often does it happen, and in which direction?

```shell.run language=python
from decimal import Decimal
from instalments import instalments
wrong = {}
for cents in range(1, 20_001):
    total = Decimal(cents) / 100
    for count in (2, 3, 4, 6, 12):
        off = sum(instalments(total, count)) - total
        if off:
            wrong.setdefault(count, []).append(off)
for count, offs in wrong.items():
    print(f"{count:2} payments: wrong for {len(offs) / 20_000:.0%} of all amounts, from {min(offs)} to {max(offs)}")
```
"""

MEND: Final = """\
Both ways: customers paid too little, and too much. The parts must be counted in whole cents, and the cents that are left
over spread over the first payments, one each. And a test for all amounts, since one example let this through.

~~~files.edit path=instalments.py
<<<<<<<
    part = round(total / count, 2)
    return [part] * count
=======
    cents, left = divmod(int(total.scaleb(2)), count)
    return [Decimal(cents + (n < left)).scaleb(-2) for n in range(count)]
>>>>>>>
~~~

~~~files.edit path=test_instalments.py
<<<<<<<
if __name__ == "__main__":
=======
    def test_every_amount_adds_up_and_no_two_payments_are_more_than_a_cent_apart(self):
        for cents in range(0, 20_001, 7):
            for count in range(1, 25):
                total = Decimal(cents).scaleb(-2)
                parts = instalments(total, count)
                self.assertEqual(sum(parts), total)
                self.assertLessEqual(max(parts) - min(parts), Decimal("0.01"))


if __name__ == "__main__":
>>>>>>>
~~~

```shell.run
python3 -m unittest -v test_instalments 2>&1
```
"""

REVIEW: Final = """\
Green. Somebody who didn't write it should look at it, and needs to change nothing for that.

```CALL reviewer role="a reviewer of code that handles money" intent=0
Please review instalments.py; as it was, it stands in before/. What did I overlook?
```
"""

LOOK: Final = """\
```files.diff path=before/instalments.py other=instalments.py
```

```files.search glob=*.py
Decimal\\(|scaleb|divmod
```
"""

FINDING: Final = """\
The arithmetic is right, and the sum is kept by construction. One thing: `int(total.scaleb(2))` throws fractions of a cent
away without a word. An amount like 10.005 would lose half a cent again, which is the very fault that was to be mended.
Refuse such an amount.
"""

REFUSE: Final = """\
The reviewer is right: an amount with fractions of a cent must be an error, not a rounding.

~~~files.edit path=instalments.py
<<<<<<<
    cents, left = divmod(int(total.scaleb(2)), count)
=======
    if total != round(total, 2):
        raise ValueError(f"{total} is not a whole number of cents")
    cents, left = divmod(int(total.scaleb(2)), count)
>>>>>>>
~~~

~~~files.edit path=test_instalments.py
<<<<<<<
if __name__ == "__main__":
=======
    def test_fractions_of_a_cent_are_refused(self):
        with self.assertRaises(ValueError):
            instalments(Decimal("10.005"), 2)


if __name__ == "__main__":
>>>>>>>
~~~

```shell.run
python3 -m unittest -v test_instalments 2>&1
```

```files.diff path=before/instalments.py other=instalments.py
```
"""

ANSWER: Final = """\
**Why**: each payment was rounded by itself, so the rounding errors added up. It went wrong in both directions: some
customers paid a few cents too little, others too much.

**What I changed**, in `instalments.py`: it counts in whole cents, and spreads what is left over one cent at a time over
the first payments. 100.00 in three is now 33.34, 33.33, 33.33. An amount with fractions of a cent is refused; the
reviewer noticed that my first version would have dropped them.

**Tests**: four, all green; the failing one as you sent it, one over every kind of amount, one for the refusal.
"""

SCRIPT: Final = {"/": [RUN, WHY, MEND, REVIEW, REFUSE, ANSWER], "/reviewer": [LOOK, FINDING]}


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, SCRIPT) as person:
        person.say(QUESTION)
        person.answered()
        return person.folder
