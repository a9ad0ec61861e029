"""The outbox of a mail system that is not there: what is sent lies in `outbox/` of the workspace."""

import os
from pathlib import Path

from ext_modules.sdk import Module

module = Module(
    "notices",
    "Puts notices to customers into the outbox, from which they are mailed.",
    keywords=["notice", "mail", "send", "customer", "customers", "inform", "message"],
)


@module.function(impact=2, summary="Send a notice to customers.", body="text", idempotent=False)
def send(to: str, subject: str, text: str) -> str:
    """Sends `text` to each customer in `to` (one per line). It can't be called back.

    ```notices.send to=$customers subject="Our apologies"
    Dear customer, …
    ```
    """
    names = to.split()
    outbox = Path(os.environ.get("IACT_WORKSPACE", "/workspace")) / "outbox"
    outbox.mkdir(exist_ok=True)
    for name in names:
        (outbox / f"{name}.txt").write_text(f"To: {name}\nSubject: {subject}\n\n{text}\n", encoding="utf-8")
    return f"Sent to {len(names)} customers: {', '.join(names)}.\n"
