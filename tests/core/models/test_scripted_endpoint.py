"""The scripted endpoint does what tests rely on; seen through plain HTTP, as any client sees it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.endpoint import Endpoint, Gate, HttpError, Reply, Request, tokens

pytestmark = pytest.mark.no_prefix_law("these tests ask the endpoint themselves: nobody's conversation")


def post(url: str, content: str, *, stream: bool = False, history: tuple[str, ...] = ()) -> tuple[int, str]:
    """Send one chat request of an agent; `history` are the replies that it got before."""
    messages = [{"role": "user", "content": content}]
    for reply in history:
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": "go on"}]
    body = {"model": "m", "messages": messages, "stream": stream, "stream_options": {"include_usage": True}}
    return send(url, "POST", "/v1/chat/completions", body)


def send(url: str, method: str, path: str, body: object = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def text(answer: tuple[int, str]) -> str:
    content = json.loads(answer[1])["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def opening(path: str) -> str:
    return f"You are agent {path}, called by the user.\n\nGo."


def events(raw: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in raw.split("\n\n") if line.startswith("data: {")]


def test_agents_get_their_own_replies_in_order() -> None:
    with Endpoint({"/": ["r1", "r2"], "/a/b": ["b1"], "*": ["any"]}) as endpoint:
        answers = [post(endpoint.url, opening(path)) for path in ("/", "/a/b", "/", "/other")]
    assert [text(answer) for answer in answers] == ["r1", "b1", "r2", "any"]
    assert [request.agent for request in endpoint.requests] == ["/", "/a/b", "/", "/other"]
    endpoint.assert_used()


def test_what_was_not_asked_for_is_found() -> None:
    with Endpoint({"/": ["used", "left over"]}) as endpoint:
        post(endpoint.url, opening("/"))
    with pytest.raises(AssertionError, match="left over"):
        endpoint.assert_used()


def test_what_was_not_foreseen_is_found() -> None:
    with Endpoint({"/": []}) as endpoint:
        assert post(endpoint.url, opening("/"))[0] == 400
    with pytest.raises(AssertionError, match="no reply number 1 for agent '/'"):
        endpoint.assert_used()


def test_replies_by_turn_do_not_run_out() -> None:
    with Endpoint({"/": ["r1", "r2"]}, by_turn=True) as endpoint:
        answers = [
            post(endpoint.url, opening("/")),
            post(endpoint.url, opening("/")),
            post(endpoint.url, opening("/"), history=("r1",)),
        ]
    assert [text(answer) for answer in answers] == ["r1", "r1", "r2"]
    endpoint.assert_used()


def test_the_last_opening_counts_since_examples_may_hold_one() -> None:
    with Endpoint({"/real": ["fine"]}) as endpoint:
        messages = [
            {"role": "user", "content": opening("/example")},
            {"role": "assistant", "content": "an example"},
            {"role": "user", "content": opening("/real")},
        ]
        status, raw = send(endpoint.url, "POST", "/v1/chat/completions", {"messages": messages})
    assert text((status, raw)) == "fine"
    assert endpoint.requests[0].turn == 0


def test_a_function_as_script() -> None:
    with Endpoint(lambda request: f"{request.agent} said {request.last!r}") as endpoint:
        assert "'go on'" in text(post(endpoint.url, opening("/x"), history=("r",)))


def test_streams_in_pieces_with_usage_and_end() -> None:
    with Endpoint({"/": [Reply("abcdefgh", chunk=3, reasoning="hm")]}) as endpoint:
        status, raw = post(endpoint.url, opening("/"), stream=True)
    found = events(raw)
    deltas = [event["choices"][0]["delta"] for event in found if event["choices"]]
    assert status == 200
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["abc", "def", "gh"]
    assert {"reasoning_content": "hm"} in deltas
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert found[-1]["usage"]["completion_tokens"] == 3
    assert raw.endswith("data: [DONE]\n\n")


def test_cached_tokens_are_the_common_prefix() -> None:
    with Endpoint({"*": [Reply("ok", repeat=True)]}) as endpoint:
        for content in ("x" * 400, "x" * 400 + "y" * 400, "x" * 200 + "z" * 200):
            post(endpoint.url, content)
    first, second, third = (request.cached_tokens for request in endpoint.requests)
    assert first == 0
    assert second == tokens("<user>" + "x" * 400) - 1  # 406 characters: the last token is not whole
    assert third == (len("<user>") + 200) // 4


def test_errors_carry_status_body_and_headers() -> None:
    errors = [HttpError(429, "slow", {"retry-after": "3"}), HttpError(400, {"error": {"code": "x"}})]
    with Endpoint({"/": [Reply(error=error) for error in errors]}) as endpoint:
        first, second = post(endpoint.url, opening("/")), post(endpoint.url, opening("/"))
    assert first[0] == 429
    assert json.loads(first[1])["error"]["message"] == "slow"
    assert (second[0], json.loads(second[1])) == (400, {"error": {"code": "x"}})


def test_a_gate_holds_the_stream() -> None:
    gate = Gate()
    answers: list[tuple[int, str]] = []
    with Endpoint({"/": [Reply("abcdef", chunk=1, gates={3: gate})]}) as endpoint:
        client = threading.Thread(
            target=lambda: answers.append(post(endpoint.url, opening("/"), stream=True))
        )
        client.start()
        assert gate.wait()
        assert endpoint.requests[0].sent == 3
        assert not endpoint.requests[0].ended.done()
        gate.release()
        client.join(300)
        assert endpoint.requests[0].wait()
    assert len(answers) == 1
    assert not endpoint.requests[0].disconnected


def test_a_cut_stream_is_incomplete() -> None:
    with Endpoint({"/": [Reply("abcdef", cut_after=2)]}) as endpoint:
        with pytest.raises(http.client.IncompleteRead):
            post(endpoint.url, opening("/"), stream=True)
        assert endpoint.requests[0].wait()
    assert not endpoint.requests[0].disconnected


def test_a_client_that_leaves_is_noticed() -> None:
    with Endpoint({"/": [Reply(hang=True)]}) as endpoint:
        connection = http.client.HTTPConnection(urlsplit(endpoint.url).netloc, timeout=20)
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps({"messages": [{"role": "user", "content": opening("/")}]}),
        )
        assert endpoint.wait_for(1, agent="/")
        connection.close()
        assert endpoint.requests[0].wait()
    assert endpoint.requests[0].disconnected


def test_models_keys_and_unknown_paths() -> None:
    with Endpoint({}, models=["one", "two"]) as endpoint:
        listed = json.loads(send(endpoint.url, "GET", "/v1/models")[1])
        assert [item["id"] for item in listed["data"]] == ["one", "two"]
        assert send(endpoint.url, "GET", "/elsewhere")[0] == 404
        assert send(endpoint.url, "POST", "/v1/chat/completions", {})[0] == 400
    with Endpoint({}, api_key="k") as endpoint:
        assert send(endpoint.url, "GET", "/v1/models")[0] == 401


def test_stopping_leaves_no_thread_even_while_a_reply_hangs() -> None:
    def script(request: Request) -> Reply:
        return Reply(hang=True)

    before = threading.active_count()
    endpoint = Endpoint(script).start()
    connection = http.client.HTTPConnection(urlsplit(endpoint.url).netloc, timeout=20)
    connection.request(
        "POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": "x"}]})
    )
    assert endpoint.wait_for(1)
    endpoint.stop()
    connection.close()
    assert threading.active_count() == before


def test_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    reply = {"text": "abcdef", "chunk": 2, "gates": {"2": "middle"}}
    script.write_text(json.dumps({"agents": {"/": ["plain", reply, {"error": [503, "busy", {}]}]}}))
    command = [sys.executable, "-m", "tests.endpoint", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("endpoint: ready ").strip()
        assert text(post(url, opening("/"))) == "plain"
        assert "'gates'" not in send(url, "GET", "/control/problems")[1]
        assert json.loads(send(url, "GET", "/control/gates")[1]) == {
            "middle": {"arrived": False, "released": False}
        }
        assert send(url, "POST", "/control/release/middle")[0] == 200
        assert len(events(post(url, opening("/"), stream=True)[1])) == 6
        assert len(json.loads(send(url, "GET", "/control/problems")[1])) == 1
        assert post(url, opening("/"))[0] == 503
        assert json.loads(send(url, "GET", "/control/problems")[1]) == []
        assert [item["agent"] for item in json.loads(send(url, "GET", "/control/requests")[1])] == [
            "/",
            "/",
            "/",
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
