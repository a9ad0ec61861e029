"""A session in the middle of its work, three agents deep, for looking at the page."""

from __future__ import annotations

from dataclasses import replace

from tests.web.fake import FakeSession, node


def busy_session(identity: str = "demo") -> FakeSession:
    """Text of every kind, one running tool, one agent writing, one paused."""
    session = FakeSession(identity)
    session.append(
        "open",
        models={"smart": {"model": "scripted"}},
        grant={"scope": "default", "allow": [["*"]], "intent": 1},
    )
    session.append(
        "say", body="Is 2025 an outlier in `sales.csv`? Let a statistician look at it, and check the figures."
    )
    turn = session.append(
        "turn",
        body="Let me look at the data first.\n\n```shell.run timeout=20\nhead -n 3 sales.csv | column -s, -t\n```\n",
    )
    session.append("gate", turn=turn.n, action=0, function="shell.run", allow=True, by="impact", impact=1)
    call = session.append("call", turn=turn.n, action=0, function="shell.run", impact=1)
    session.append(
        "result", body="year  revenue\n2023  41200\n2024  43950\n", turn=turn.n, action=0, function="shell.run",
        call=call.n, status="ok", var="run_1", ms=312, data={"exit": 0},
    )  # fmt: skip
    turn = session.append(
        "turn",
        body="Three columns, no gaps. Now the fit.\n\n"
        '```CALL analyst role="a careful statistician"\nFit a **linear trend** to $sales and tell me whether 2025 '
        "is an outlier.\n```\n",
        cut=120,
    )
    session.append("spawn", "/analyst", "a careful statistician", caller="/", allow=["shell.*"], intent=1)
    session.append("call", turn=turn.n, action=0, function="CALL", impact=0)
    turn = session.append(
        "turn", "/analyst",
        "I'd like to have the figures checked independently.\n\n```CALL checker\nRecompute the residuals of $sales.\n```\n",
    )  # fmt: skip
    session.append("spawn", "/analyst/checker", "", caller="/analyst")
    session.append("call", "/analyst", turn=turn.n, action=0, function="CALL", impact=0)
    session.append(
        "reply", "/analyst/checker",
        "The residuals are small but for one:\n\n| year | residual |\n|---|---:|\n| 2024 | -0.3 |\n| 2025 | **+4.1** |\n\n"
        "Which threshold do you want?",
        to="/analyst", status="ok",
    )  # fmt: skip
    turn = session.append(
        "turn", "/analyst",
        "```CALL checker\nUse three standard deviations.\n```\n",
    )  # fmt: skip
    session.append("call", "/analyst", turn=turn.n, action=0, function="CALL", impact=0)
    turn = session.append("turn", "/analyst/checker", "```shell.run\npython3 residuals.py --sigma 3\n```\n")
    session.append(
        "gate",
        "/analyst/checker",
        turn=turn.n,
        action=0,
        function="shell.run",
        allow=True,
        by="impact",
        impact=1,
    )
    call = session.append("call", "/analyst/checker", turn=turn.n, action=0, function="shell.run", impact=1)
    session.show(
        node("/", "waiting", doing="waiting for /analyst", used=8400),
        node("/analyst", "waiting", doing="waiting for /analyst/checker", used=5200),
        replace(node("/analyst/checker", "acting", doing="shell.run", used=2100), calls=(call.n,)),
    )
    session.print("/analyst/checker", call.n, "reading sales.csv\nfitting 41 points …\n")
    return session
