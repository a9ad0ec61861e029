"""Hosts and gateways with certificates: all their traffic is encrypted, and other peers are refused.

With real certificates of two authorities, through the product: everything that works without certificates works with
them. Both sides refuse plain text, and peers without a certificate, with one of another authority, or for another
address.
"""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.acceptance.product import Product, acknowledged, until
from tests.acceptance.test_cluster import Cluster, closed, cluster, greeted, lists, said
from tests.certificates import Authority, Issued
from tests.endpoint import Endpoint, Reply


def using(authority: Authority, issued: Issued) -> dict[str, str]:
    return {
        "IACT_CLUSTER_CA": str(authority.file),
        "IACT_CLUSTER_CERT": str(issued.certificate),
        "IACT_CLUSTER_KEY": str(issued.key),
    }


def other_settings(product: Product, **settings: str) -> Product:
    kept = {name: text for name, text in product.settings.items() if not name.startswith("IACT_CLUSTER_C")}
    kept.pop("IACT_CLUSTER_KEY", None)
    return replace(product, settings={**kept, **settings})


def ports(hosts: Cluster, name: str) -> list[str]:
    """Where a host serves its page, and where it is spoken to."""
    (found,) = [one for one in json.loads(hosts.run("status", "--json")) if one["host"] == name]
    return [found["page"], found["control"]]


@pytest.mark.no_prefix_law("several sessions at one endpoint say different things at the same turn")
def test_a_cluster_with_certificates_does_what_one_without_does(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    given = using(ours, ours.issue("member"))
    with (
        Endpoint({"/": [Reply("The anchor is weighed.", repeat=True)]}) as endpoint,
        cluster(tmp_path, endpoint, "a", "b", **given) as hosts,
        hosts.gateway() as server,
    ):
        sockets = [greeted(hosts, server, None) for _ in range(2)]
        sessions = [said(one, "Hello") for one in sockets]
        assert {hosts.holder(one) for one in sessions} == {"a", "b"}, "they are spread"
        first, second = sessions
        here = hosts.holder(first)
        there = "b" if here == "a" else "a"
        assert f"now on the host {there} " in hosts.run("move", first, there)
        assert closed(sockets[0]) == 4009
        again = greeted(hosts, server, first)
        assert said(again, "Are you there?") == first
        # What one client asks of several hosts, what hosts ask of each other, and a download from one of them.
        acknowledged(again, {"type": "session.rename", "session": second, "title": "Anchors"})
        until(partial(lists, again, set(sessions)), "the list of all")
        until(
            lambda: len(list_of(acknowledged(again, {"type": "sessions.search", "query": "weighed"}))) == 2,
            "both to be found",
            every=0.2,
        )
        link = str(acknowledged(again, {"type": "export"})["href"])
        got = httpx.get(
            f"http://127.0.0.1:{server.port}{link}", headers={"Authorization": f"Bearer {server.key}"}
        )
        assert "The anchor is weighed." in got.text
        # Commands on a host speak to the host that runs there.
        ran = hosts.product(there).run("say", "--session", first, "And by a command?")
        assert ran.status == 0, ran
        assert hosts.run("drain", there).startswith(f"The host {there} handed over")


def list_of(answer: dict[str, object]) -> list[object]:
    found = answer["list"]
    assert isinstance(found, list)
    return found


def test_whoever_has_no_certificate_of_the_authority_is_heard_by_nobody(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    member, stranger = ours.issue("member"), theirs.issue("stranger")
    with (
        Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint,
        cluster(tmp_path, endpoint, "a", **using(ours, member)) as hosts,
    ):
        for place in ports(hosts, "a"):
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"http://{place}/")
            assert speaks(place, ours, member)
            assert not speaks(place, ours, None), "without a certificate"
            assert not speaks(place, ours, stranger), "with one of another authority"
            assert not speaks(place, ours, member, ssl.TLSVersion.TLSv1_2), "in an older version"
        desk = hosts.product("desk")
        for product in (
            other_settings(desk),  # in clear
            other_settings(desk, **using(theirs, stranger)),  # takes the host for none of its own
            other_settings(desk, **using(ours, stranger)),  # is none of the host's own
        ):
            refused = product.run("cluster", "drain", "a")
            assert refused.status == 1, refused
            assert "The host a at 127.0.0.1:" in refused.sentence
            assert "does not answer" in refused.sentence
        # A host that has a certificate for another address is believed by nobody.
        elsewhere = ours.issue("elsewhere", "192.0.2.1")
        hosts.settings.update(using(ours, elsewhere))
        hosts.start_host("b")
        refused = desk.run("cluster", "drain", "b")
        assert "does not answer" in refused.sentence
        assert "mismatch" in refused.sentence
        # A gateway of the wrong authority leads nobody to a host.
        with (
            other_settings(hosts.product("gateway"), **using(theirs, stranger)).serving() as server,
            server.connect() as client,
        ):
            client.send(json.dumps({"type": "hello", "session": None, "since": 0, "id": 1}))
            assert closed(client) == 1013
        assert desk.run("cluster", "drain", "a").status == 0


def speaks(
    place: str, authority: Authority, issued: Issued | None, version: ssl.TLSVersion | None = None
) -> bool:
    """Whether a member answers a request, and be it that a key is wanted."""
    context = ssl.create_default_context(cafile=str(authority.file))
    if issued is not None:
        context.load_cert_chain(issued.certificate, issued.key)
    if version is not None:
        context.maximum_version = version
    host, _, port = place.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=host) as wire,
        ):
            wire.sendall(f"GET / HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            return wire.recv(100).startswith(b"HTTP/1.1 401")
    except OSError:
        return False


def test_certificates_that_can_not_be_used_are_named(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    given = using(ours, ours.issue("member"))
    with Endpoint({}) as endpoint:
        product = Cluster(tmp_path, endpoint, ExitStack()).product("a")
        some = other_settings(product, IACT_CLUSTER_CA=given["IACT_CLUSTER_CA"])
        assert "need all three settings" in some.run("cluster", "host").sentence
        for name, wrong in (
            ("IACT_CLUSTER_CERT", str(tmp_path / "none.pem")),
            ("IACT_CLUSTER_KEY", str(theirs.issue("stranger").key)),
            ("IACT_CLUSTER_CA", str(tmp_path / "member.key")),
        ):
            refused = other_settings(product, **{**given, name: wrong}).run("cluster", "host")
            assert refused.status == 2, refused
            assert "can't be used" in refused.sentence
            assert wrong in refused.sentence
