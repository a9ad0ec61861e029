"""`web.fetch` through a proxy of the test's own, in process: what it fetches, follows, cuts and refuses."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ext_modules.sdk import wire
from ext_modules.sdk.loader import load
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON, Value
from ext_modules.web import http
from ext_modules.web.http import Response
from ext_modules.web.module import module
from ext_modules.web.pages import MEDIA, fetched, packed, unpacked
from iact.core.modules.manifest import Manifest
from tests.ext_modules.website import Site, certificate, website

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Fetch from a small web of pages, by host; gives how the call ended."""

    def run(
        url: str,
        pages: Mapping[str, bytes],
        *,
        tls: Path | None = None,
        bench: Bench | None = None,
        **more: JSON,
    ) -> Done:
        async def scenario() -> Done:
            async with website(pages, tls=tls) as site:
                return await _fetch(bench or Bench(module), site, url, more)

        return asyncio.run(scenario())

    async def _fetch(bench: Bench, site: Site, url: str, more: Mapping[str, JSON]) -> Done:
        monkeypatch.setenv("HTTPS_PROXY", site.proxy)
        return await bench.call("fetch", {"url": url, **more}, timeout=20)

    return run


def page(body: str | bytes, *fields: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        *fields,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + content


def message(done: Done) -> str:
    assert done.error is not None, done.output
    return done.error.message


def test_the_manifest_is_one_that_the_core_takes() -> None:
    loaded = load(ROOT / "ext_modules/web/module.py")
    manifest = Manifest.from_proto(wire.manifest(loaded).SerializeToString())
    assert [(function.name, function.impact) for function in manifest.functions] == [
        ("search", 0),
        ("fetch", 0),
    ]
    assert manifest.needs.workspace == "none"
    assert manifest.needs.egress == ("*",)


def test_a_page_is_given_as_markdown(ask: Callable[..., Done]) -> None:
    done = ask("http://a.example/x", {"a.example:80/x": page("<title>T</title><h1>Hi</h1><a href=y>l</a>")})
    assert done.output == "T\nhttp://a.example/x\n\n# Hi\n\n[l](http://a.example/y)\n"
    assert done.media_type == "text/markdown"
    at = done.data["at"]
    assert done.data == {"status": 200, "url": "http://a.example/x", "title": "T", "cut": False, "at": at}


def test_tls_is_checked_against_the_trusted_certificates(
    ask: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = certificate(tmp_path, "a.example")
    pages = {"a.example:443/": page("secure")}
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    assert "secure" in ask("https://a.example", pages, tls=chain).output
    assert "certificate of b.example:443 is not valid" in message(
        ask("https://b.example", {"b.example:443/": b""}, tls=chain)
    )
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate of a.example:443 is not valid" in message(ask("https://a.example", pages, tls=chain))


def test_redirects_are_followed_step_by_step(ask: Callable[..., Done]) -> None:
    pages = {
        "a.example:80/": page("", "Location: http://b.example/new", status="301 Moved"),
        "b.example:80/new": page("", "Location: /newer", status="302 Found"),
        "b.example:80/newer": page("there"),
    }
    done = ask("http://a.example/", pages)
    assert done.data["url"] == "http://b.example/newer"
    assert "there" in done.output


def test_a_redirect_to_a_host_that_is_not_allowed_ends_there(ask: Callable[..., Done]) -> None:
    pages = {"a.example:80/": page("", "Location: http://evil.example/", status="301 Moved")}
    assert message(ask("http://a.example/", pages)) == "evil.example can't be reached from here."


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "gopher://x/", "http:///x", "http://u:p@b.example/"]
)
def test_a_redirect_elsewhere_is_refused(ask: Callable[..., Done], target: str) -> None:
    assert message(
        ask("http://a.example/", {"a.example:80/": page("", f"Location: {target}", status="301 M")})
    )


def test_redirects_end(ask: Callable[..., Done]) -> None:
    pages = {"a.example:80/": page("", "Location: /", status="301 Moved")}
    assert "redirects more than 5 times" in message(ask("http://a.example/", pages))


def test_no_redirect_gives_up_encryption(
    ask: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = certificate(tmp_path, "a.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    pages = {"a.example:443/": page("", "Location: http://a.example/", status="301 Moved")}
    assert "not encrypted" in message(ask("https://a.example/", pages, tls=chain))


@pytest.mark.parametrize(
    "url",
    ["", "a.example", "ftp://a.example/", "file:///etc/passwd", "http://", "http://u:p@a.example/", "http://a:0/",
     "http://a.example:99999/", "http://[::1", "http://a..example\x01/"],
)  # fmt: skip
def test_what_is_not_an_address_of_the_web_is_refused(ask: Callable[..., Done], url: str) -> None:
    assert message(ask(url, {}))


def test_without_a_way_out_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    assert "a.example can't be reached from here." in message(
        asyncio.run(Bench(module).call("fetch", {"url": "http://a.example/"}))
    )


def test_a_request_cannot_be_split(ask: Callable[..., Done]) -> None:
    """What stands in an address reaches the server as one request line, whatever it holds."""
    done = ask("http://a.example/ x\r\nHost: b", {"a.example:80/%20xHost:%20b": page("one line")})
    assert "one line" in done.output


def test_an_error_page_shows_its_status(ask: Callable[..., Done]) -> None:
    done = ask("http://a.example/", {"a.example:80/": page("gone", status="404 Not Found")})
    assert done.output.startswith("http://a.example/ (status 404)\n")


def test_long_pages_come_in_parts(ask: Callable[..., Done]) -> None:
    pages = {"a.example:80/": page("0123456789" * 10, kind="text/plain")}
    first = ask("http://a.example/", pages, most=30)
    assert first.output.endswith("0123456789\n\n[70 more characters; go on with start=30.]\n")
    assert ask("http://a.example/", pages, start=95).output == "56789\n"


def test_a_page_ends_with_what_was_left_out_of_it(ask: Callable[..., Done]) -> None:
    body = (
        "<nav><a href=/x>X</a></nav><main><article>a</article><article>b</article></main><footer>us</footer>"
    )
    pages = {"a.example:80/": page(body)}
    done = ask("http://a.example/", pages)
    assert done.output.endswith(
        "\na\n\nb\n\n[Left out: a footer; raw=true gives all.]\nNavigation: [X](http://a.example/x)\n"
    )
    without = ask("http://b.example/", {"b.example:80/": page("<nav><a href=/x>X</a></nav><main>a</main>")})
    assert without.output.endswith("\na\n\nNavigation: [X](http://b.example/x)\n")
    assert "<footer>us" in ask("http://a.example/", pages, raw=True).output
    assert "Left out" not in ask("http://a.example/", pages, raw=True).output
    assert "Left out" not in ask("http://a.example/", pages, most=1).output


def test_a_page_without_text_and_one_that_is_too_large_say_so(
    ask: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = page("<div id=root></div><script>draw()</script>")
    assert (
        "[It has no text of its own; if scripts write it,"
        in ask("http://a.example/", {"a.example:80/": empty}).output
    )
    monkeypatch.setattr("ext_modules.web.module._LARGEST_PAGE", 10)
    long = page("<p>12345678901234567890")
    assert ask("http://a.example/", {"a.example:80/": long}).output.endswith(
        "1234567\n\n[The page was too large and ends here.]\n"
    )


def test_raw_is_raw(ask: Callable[..., Done]) -> None:
    assert "<p>a" in ask("http://a.example/", {"a.example:80/": page("<p>a")}, raw=True).output


def test_what_is_not_text_is_an_artifact(ask: Callable[..., Done]) -> None:
    done = ask("http://a.example/cat.png?x", {"a.example:80/cat.png?x": page(b"\x89PNG", kind="image/png")})
    value = done.artifacts[done.artifact]
    assert (value.data, value.media_type, value.name) == (b"\x89PNG", "image/png", "cat.png")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<p>ä".encode("latin-1"), "text/html; charset=latin-1"),
        (b'<meta charset="latin-1"><p>\xe4', "text/html"),
        ("<p>ä".encode(), "text/html; charset=no-such-thing"),
        ("<p>ä".encode(), "text/html; charset=zlib_codec"),
    ],
)
def test_charsets(ask: Callable[..., Done], body: bytes, kind: str) -> None:
    assert ask("http://a.example/", {"a.example:80/": page(body, kind=kind)}).output.endswith("ä\n")


def test_bodies_are_cut_packed_or_not(ask: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LARGEST", 100_000)
    plain = b"x" * 10_000_000
    for body, fields in ((plain, ()), (gzip.compress(plain), ("Content-Encoding: gzip",))):
        done = ask("http://a.example/", {"a.example:80/": page(body, *fields, kind="text/plain")}, most=10**9)
        assert done.data["cut"] is True
        assert len(done.output) < 101_000
        assert "too large" in done.output


def test_gzip_is_unpacked_and_other_encodings_refused(ask: Callable[..., Done]) -> None:
    packed = page(gzip.compress(b"<p>hello"), "Content-Encoding: gzip")
    assert "hello" in ask("http://a.example/", {"a.example:80/": packed}).output
    odd = page(b"x", "Content-Encoding: zstd")
    assert "'zstd'" in message(ask("http://a.example/", {"a.example:80/": odd}))
    broken = page(b"x" * 100, "Content-Encoding: gzip")
    assert "did not answer as a web server does" in message(
        ask("http://a.example/", {"a.example:80/": broken})
    )


def test_an_answer_that_is_no_http_is_named(ask: Callable[..., Done]) -> None:
    found = message(ask("http://a.example/", {"a.example:80/": b"220 smtp ready\r\n\r\n"}))
    assert "did not answer as a web server does (BadStatusLine" in found


def test_a_page_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> Done:
        async with website({"a.example:80/": page("x", "X: y")[:-1]}, hang=True) as site:
            monkeypatch.setenv("HTTPS_PROXY", site.proxy)
            return await Bench(module).call("fetch", {"url": "http://a.example/"}, timeout=1.5)

    assert "in time" in message(asyncio.run(scenario()))


def test_the_trust_store_verifies() -> None:
    context = http._trust()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News of X</title>
<item><title>One</title><link>http://a.example/1</link><pubDate>Mon, 02 Nov 2026</pubDate>
<description>&lt;p&gt;First &lt;b&gt;words&lt;/b&gt;&lt;/p&gt;</description></item>
<item><title>Two</title><link>javascript:alert(1)</link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title>Three</title>
<link rel="alternate" href="https://a.example/3"/><updated>2026-11-02T00:00:00Z</updated><summary>Third</summary></entry></feed>"""


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (RSS, "application/rss+xml", "News of X\nhttp://a.example/\n\n- [One](http://a.example/1) (Mon, 02 Nov 2026)\n"
         "  First **words**\n- Two\n"),
        (ATOM, "application/atom+xml", "Log\nhttp://a.example/\n\n- [Three](https://a.example/3) (2026-11-02T00:00:00Z)\n"
         "  Third\n"),
        ("<x>no feed</x>", "text/xml", "http://a.example/\n\n<x>no feed</x>\n"),
        ('<!DOCTYPE rss [<!ENTITY a "aaaa">]><rss>&a;</rss>', "text/xml", "<rss>&a;</rss>\n"),
        ("<rss>" + "<a>" * 200, "text/xml", "<a><a>\n"),
    ],
)  # fmt: skip
def test_a_feed_is_a_list_and_what_is_none_stays_as_it_is(
    ask: Callable[..., Done], body: str, kind: str, expected: str
) -> None:
    assert ask("http://a.example/", {"a.example:80/": page(body, kind=kind)}).output.endswith(expected)


def test_a_long_page_is_cut_between_paragraphs(ask: Callable[..., Done]) -> None:
    text = "\n\n".join(f"Paragraph {number} has some words." for number in range(10))
    done = ask("http://a.example/", {"a.example:80/": page(text, kind="text/plain")}, most=100)
    start = int(done.output.rpartition("start=")[2].split(".")[0])
    assert done.output.partition("\n\n")[2].startswith("Paragraph 0")
    more = ask("http://a.example/", {"a.example:80/": page(text, kind="text/plain")}, start=start)
    assert more.output.lstrip().startswith("Paragraph 3")


def test_who_reads_a_page_again_reads_the_same_unless_they_want_it_anew(ask: Callable[..., Done]) -> None:
    bench = Bench(module)
    first = ask("http://a.example/", {"a.example:80/": page("before")}, bench=bench)
    again = ask("http://a.example/", {"a.example:80/": page("after")}, bench=bench)
    assert again.output.endswith("before\n")
    assert f"(as it was at {first.data['at']})" in again.output
    anew = ask("http://a.example/", {"a.example:80/": page("after")}, bench=bench, fresh=True)
    assert anew.output.endswith("after\n")
    assert ask("http://a.example/", {}, bench=bench).output.endswith("after\n")


@pytest.mark.parametrize(
    "cached",
    [b"", b"{}\nx", b"[1]\nx", b"\xff\n", b'{"url": 1}\nx', b"[" * 100_000, b'{"url":"u","kind":"text/html"'
     b',"charset":"utf-8","at":"now","status":true,"cut":0}\nx'],
)  # fmt: skip
def test_what_is_cached_and_is_no_page_is_fetched(cached: bytes) -> None:
    """A journal and its blobs may come from elsewhere."""
    assert unpacked(Value(cached, MEDIA)) is None
    assert unpacked(Value(packed(fetched(Response("u", 200, "text/html", "", b"x", False))).data)) is None


def test_a_search_gives_results_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"title": "  A \n title", "url": "https://a.example/x", "content": "Words\x07 here", "engines": ["e1", "e2"],
         "publishedDate": "2026-11-02T00:00:00", "score": 3},
        {"title": "no address", "url": "javascript:alert(1)"}, "nonsense", {"url": "http://[::1"},
        {"title": "B", "url": "http://b.example/", "content": None, "engine": "e3"},
    ]  # fmt: skip
    answer = page(json.dumps({"results": rows}), kind="application/json")

    async def scenario(query: str, pages: Mapping[str, bytes], **more: JSON) -> Done:
        async with website(pages) as site:
            monkeypatch.setenv("HTTPS_PROXY", site.proxy)
            return await Bench(module).call("search", {"query": query, **more}, timeout=20)

    monkeypatch.delenv("IACT_SEARCH", raising=False)
    assert "No search server is set" in message(asyncio.run(scenario("x", {})))
    monkeypatch.setenv("IACT_SEARCH", "http://search.lan:8888/")
    place = "search.lan:8888/search?q=two%20words&format=json&pageno=1"
    done = asyncio.run(scenario("two words", {place.replace("%20", "+"): answer}))
    assert json.loads(done.output) == [
        {"title": "A title", "url": "https://a.example/x", "text": "Words here", "from": ["e1", "e2"],
         "date": "2026-11-02T00:00:00"},
        {"title": "B", "url": "http://b.example/", "text": "", "from": ["e3"]},
    ]  # fmt: skip
    for body in ("<html>", "[]", '{"results": 1}', "[" * 100_000):
        wrong = asyncio.run(scenario("two words", {place.replace("%20", "+"): page(body)}))
        assert "not that of a SearXNG server" in message(wrong)
    denied = page("no", status="403 Forbidden")
    assert "allow the format json" in message(
        asyncio.run(scenario("two words", {place.replace("%20", "+"): denied}))
    )
