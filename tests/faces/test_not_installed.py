"""A face whose packages are missing says so and names their extra. The other faces are served."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec

import pytest
from starlette.testclient import TestClient

from iact.accounts.rights import LOCAL, Principal
from iact.core.session.runtime import Runtime
from iact.faces.a2a import routes as a2a
from iact.faces.ag_ui import routes as ag_ui
from iact.faces.http.server import application
from iact.faces.mcp import routes as mcp
from iact.faces.responses import routes as responses


class _Owner:
    """Knows everybody, and gives nobody a session."""

    def identify(self, authorization: str, peer: str) -> Principal | None:
        return LOCAL

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        raise AssertionError("nothing is opened")


def test_what_is_missing_is_said_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for face in (a2a, ag_ui, mcp):
        monkeypatch.setattr(
            face, "find_spec", lambda name: None if name in ("a2a", "ag_ui", "mcp") else find_spec(name)
        )
    app = application([responses.routes, ag_ui.routes, a2a.routes, mcp.routes], _Owner())
    client = TestClient(app, headers={"Authorization": "Bearer x"})
    for path, extra in (("/a2a", "a2a"), ("/ag-ui", "ag-ui"), ("/mcp", "mcp")):
        answer = client.post(path, json={})
        assert (answer.status_code, f"pip install 'iact[{extra}]'" in answer.text) == (501, True), answer.text
    assert client.get("/.well-known/agent-card.json").status_code == 501
    assert client.get("/v1/models").status_code == 200
