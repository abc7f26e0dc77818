"""Clients check that their HTTP library calls usp's guards, before their first request. Else they request nothing.

Most tests run in processes of their own: a process checks a library once.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from sockets import answering, talk
from usp.exceptions import UnguardedClientError
from usp.web_client import requests_internals
from usp.web_client.self_check import require

pytestmark = pytest.mark.network

HOW = {
    "requests": """
        import requests, usp.exceptions, usp.tree
        def fetch(url):
            return usp.tree.sitemap_tree_for_homepage(url)
        """,
    "aiohttp": """
        import asyncio, aiohttp, usp.aio, usp.exceptions
        from usp.web_client.aiohttp_client import AiohttpWebClient
        def fetch(url):
            return asyncio.run(usp.aio.sitemap_tree_for_homepage(url, AiohttpWebClient()))
        """,
}

#: Releases of the libraries that do not call what usp replaces, or do not have it: their names, and how they differ.
RELEASES = {
    "another name": (
        "requests",
        """
        from urllib3.connection import HTTPConnection
        HTTPConnection._open_socket = HTTPConnection._new_conn
        def connect(self):
            self.sock = self._open_socket()
        HTTPConnection.connect = connect
        """,
        "urllib3 .* over http passed the guards",
    ),
    "another name for TLS": (
        "requests",
        """
        from urllib3.connection import HTTPConnection, HTTPSConnection
        HTTPSConnection._open_socket = HTTPConnection._new_conn
        def connect(self):
            self.sock = self._open_socket()
        HTTPSConnection.connect = connect
        """,
        "over https passed the guards",
    ),
    "other pools": (
        "requests",
        """
        import requests.adapters, urllib3
        def get_connection_with_tls_context(self, request, verify, proxies=None, cert=None):
            return urllib3.PoolManager().connection_from_url(request.url)
        requests.adapters.HTTPAdapter.get_connection_with_tls_context = get_connection_with_tls_context
        """,
        "over http passed the guards",
    ),
    "no such name": (
        "requests",
        """
        import http.client
        http.client.HTTPResponse._close_connection = http.client.HTTPResponse._close_conn
        del http.client.HTTPResponse._close_conn
        """,
        "http.client.HTTPResponse has no _close_conn",
    ),
    "another signature": (
        "requests",
        """
        from urllib3.connection import HTTPConnection
        def connect(self):
            self.sock = self._new_conn("an argument")
        HTTPConnection.connect = connect
        """,
        "usp's guards raise TypeError",
    ),
    "other sockets": (
        "aiohttp",
        """
        import aiohttp
        make = aiohttp.TCPConnector.__init__
        def __init__(self, *args, socket_factory=None, **options):
            make(self, *args, **options)
        aiohttp.TCPConnector.__init__ = __init__
        """,
        "aiohttp .* passed a guard",
    ),
    "another way to reuse a connection": (
        "aiohttp",
        """
        import aiohttp, aiohttp.client, inspect
        connect = aiohttp.TCPConnector.connect
        source = inspect.getsource(aiohttp.ClientSession._request)
        assert "self._connector.connect(" in source
        source = source.replace("self._connector.connect(", "_connect(self._connector, ")
        vars(aiohttp.client)["_connect"] = connect
        exec("class Other:\\n" + source, vars(aiohttp.client))
        aiohttp.ClientSession._request = aiohttp.client.Other._request
        """,
        "aiohttp .* passed a guard",
    ),
    "no such attribute": (
        "aiohttp",
        """
        import aiohttp
        make = aiohttp.ClientSession.__init__
        def __init__(self, *args, **options):
            make(self, *args, **options)
            del self._retry_connection
        aiohttp.ClientSession.__init__ = __init__
        """,
        "ClientSession has no _retry_connection",
    ),
}


def run(*parts: str) -> str:
    """Run a program in a process of its own; return what it prints. Nothing may go to stderr."""
    program = "\n".join(textwrap.dedent(part) for part in parts)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("library", "release", "message"), RELEASES.values(), ids=RELEASES)
def test_a_library_that_does_not_call_the_guards(library: str, release: str, message: str) -> None:
    """With a release of a library that does not call a guard, a client raises, and requests nothing."""
    with talk(answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")) as server:
        printed = run(
            release,
            HOW[library],
            f"""
            for _ in range(2):
                try:
                    print(fetch("{server.url}"))
                except usp.exceptions.UnguardedClientError as error:
                    print(error)
            """,
        )
        assert server.accepted == 0
    assert len(printed.splitlines()) == 2
    with pytest.raises(UnguardedClientError, match=message):
        raise UnguardedClientError(printed.splitlines()[0])
    assert "pip install '" in printed


@pytest.mark.parametrize("library", HOW)
def test_the_check_uses_no_network(library: str) -> None:
    """If the guards work, the check makes no socket and looks up no host."""
    printed = run(
        HOW[library],
        f"""
        import sys, asyncio
        from usp.web_client.{library}_internals import _PASSED, check_guards
        def hook(event, arguments):
            if is_on and event.startswith("socket."):
                print(event, arguments)
        async def both():
            global is_on
            is_on = True
            if (waiting := check_guards()) is not None:
                await waiting
            is_on = False
        is_on = False
        sys.addaudithook(hook)
        asyncio.run(both())
        print(*_PASSED)
        """,
    )
    assert printed in ("adapter\n", "session\n")


MOCKS = {
    "requests-mock": (
        "requests",
        """
        import requests_mock
        with requests_mock.Mocker() as mock:
            mock.get(requests_mock.ANY, status_code=404)
            fetch("https://mocked.example/")
            urls = {request.url for request in mock.request_history}
        """,
        "adapter",
    ),
    "responses": (
        "requests",
        """
        import re, responses
        with responses.RequestsMock() as mock:
            mock.get(re.compile(".*"), status=404)
            fetch("https://mocked.example/")
            urls = {call.request.url for call in mock.calls}
        """,
        "pool",
    ),
    "vcrpy": (
        "requests",
        """
        import tempfile, vcr
        with tempfile.TemporaryDirectory() as folder, vcr.use_cassette(folder + "/cassette.yaml") as cassette:
            fetch("http://127.0.0.1:2/")
            urls = {request.uri for request in cassette.requests}
        """,
        "adapter",
    ),
    "vcrpy, asyncio": (
        "aiohttp",
        """
        import tempfile, vcr
        with tempfile.TemporaryDirectory() as folder, vcr.use_cassette(folder + "/cassette.yaml") as cassette:
            fetch("http://127.0.0.1:2/")
            urls = {request.uri for request in cassette.requests}
        """,
        "session",
    ),
    "a fake request": (
        "aiohttp",
        """
        from unittest.mock import patch
        urls = set()
        async def fake(self, method, url, **options):
            urls.add(str(url))
            raise aiohttp.ClientError
        with patch("aiohttp.ClientSession._request", fake):
            fetch("https://mocked.example/")
        """,
        "",
    ),
}


@pytest.mark.parametrize(("library", "mock", "passed"), MOCKS.values(), ids=MOCKS)
def test_mocks_do_not_see_the_check(library: str, mock: str, passed: str) -> None:
    """If the first use is under a mock, the check goes past it. What a mock hides is checked once it is gone."""
    printed = run(
        HOW[library],
        mock,
        f"""
        from usp.web_client.{library}_internals import _PASSED
        print(*_PASSED)
        assert not any("127.0.0.1:1/" in url for url in urls), urls
        fetch("http://127.0.0.1:2/")
        print(*sorted(_PASSED))
        """,
    )
    before, after = printed.splitlines()
    assert before == passed
    assert after.split()[0] in ("adapter", "session")


def test_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads may check at once. A check that failed fails again."""
    monkeypatch.setattr(requests_internals, "_PASSED", set())
    together = threading.Barrier(4)
    failed: list[BaseException] = []

    def check() -> None:
        together.wait()
        try:
            requests_internals.check_guards()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert {"adapter"} == requests_internals._PASSED
    requests_internals._PASSED.clear()
    monkeypatch.setattr(requests_internals, "_private_names", lambda: [(requests_internals, "no_such_name")])
    for _ in range(2):
        with pytest.raises(UnguardedClientError, match="has no no_such_name"):
            requests_internals.check_guards()


def test_names() -> None:
    """A missing name is named, with the version that lacks it and what to install."""
    require(("requests",), [(str, "lower upper"), ("", "strip")])
    with pytest.raises(UnguardedClientError, match=r"requests \d.*str has no shout\. .* pip install 'requests[<>]"):
        require(("requests",), [(str, "lower shout")])
