"""The options of `usp ls`: how they are written, and what they are to the front doors and the web client."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from usp.limits import Limits
from usp.politeness import Politeness

if TYPE_CHECKING:
    from usp.web_client.requests_client import RequestsWebClient

__all__ = ["add_fetching", "add_limits", "add_sources", "client_for", "tree_options"]

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_ONE_LINE = re.compile(r"[\t -~\x80-\xff]*")  # what may stand in a header
_CROSS_HOST = {
    "allow": "any host",
    "same-site": "also www, news, ... of the same example.org",
    "same-host": "the site's own host only",
}
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_MAX_SECONDS_TO_CONNECT = 10.0

if TYPE_CHECKING:
    Group = argparse._ArgumentGroup


def add_sources(group: Group) -> None:
    """Add the options that say what is fetched."""
    group.add_argument("-r", "--no-robots", action="store_true", help="don't discover sitemaps through robots.txt")
    group.add_argument("-k", "--no-known", action="store_true", help="don't discover sitemaps through well-known URLs")
    group.add_argument("--respect-robots", action="store_true", help="leave out sitemaps that robots.txt disallows")
    hosts = "\n".join(f"  {name}: {what}" for name, what in _CROSS_HOST.items())
    group.add_argument(
        "--cross-host",
        choices=_CROSS_HOST,
        default="allow",
        metavar="WHICH",
        help=f"which hosts sitemaps may be on (default: %(default)s)\n{hosts}",
    )


def add_fetching(group: Group) -> None:
    """Add the options that say how it is fetched."""
    group.add_argument(
        "-c",
        "--concurrency",
        type=_number_of("requests"),
        metavar="N",
        help="requests at once to one host (default: 8)",
    )
    group.add_argument("--crawl-delay", action="store_true", help="keep the Crawl-delay that robots.txt asks for")
    group.add_argument("--user-agent", type=_user_agent, metavar="TEXT", help="the name to go by, at every host")
    group.add_argument(
        "-H",
        "--header",
        action=_AddHeader,
        default={},
        metavar="'NAME: VALUE'",
        help="send this header to the site's own scheme, host and\nport, and nowhere else; may be given several times",
    )
    group.add_argument(
        "--proxy", type=_proxy, metavar="URL", help="fetch through a proxy: http://user:password@host:3128"
    )
    group.add_argument("--insecure", action="store_true", help="don't verify TLS certificates")


def add_limits(group: Group) -> None:
    """Add the options that say where to end."""
    limits = Limits()
    group.add_argument(
        "--max-pages", type=_number_of("pages"), metavar="N", help="end after so many pages (default: none)"
    )
    group.add_argument(
        "--max-time",
        type=_seconds,
        metavar="SECONDS",
        help=f"end after so long, with what was had (default: {limits.tree_seconds:g})",
    )
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help=f"the time for one request in all (default: {limits.request_seconds:g})",
    )


def tree_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options, as the front doors take them."""
    limits = {
        "max_pages": arguments.max_pages,
        "tree_seconds": arguments.max_time,
        "request_seconds": arguments.timeout,
    }
    return {
        "use_robots": not arguments.no_robots,
        "use_known_paths": not arguments.no_known,
        "concurrency": arguments.concurrency,
        "limits": Limits(**{name: value for name, value in limits.items() if value is not None}),
        "politeness": Politeness(crawl_delay=arguments.crawl_delay),
        "respect_robots": arguments.respect_robots,
        "cross_host": arguments.cross_host,
    }


def client_for(arguments: argparse.Namespace) -> RequestsWebClient:
    """The web client that the options ask for."""
    from usp.web_client.requests_client import RequestsWebClient  # imported only when needed: requests is heavy

    client = RequestsWebClient(
        verify=not arguments.insecure, user_agent=arguments.user_agent, headers=arguments.header or None
    )
    if arguments.proxy is not None:
        client.set_proxies({"http": arguments.proxy, "https": arguments.proxy})
    if arguments.timeout is not None:
        # The client's own time-outs are for parts of a request, and must not end one that has time left.
        client.set_timeout((min(arguments.timeout, _MAX_SECONDS_TO_CONNECT), arguments.timeout))
    return client


def _number_of(what: str) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= 1):
            raise argparse.ArgumentTypeError(f"give a number of {what}, 1 or more, not {text!r}")
        return int(text)

    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0.001):
        raise argparse.ArgumentTypeError(f"give a number of seconds, more than 0, not {text!r}")
    return seconds


def _user_agent(text: str) -> str:
    if not text.strip() or not _ONE_LINE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"give a text in one line, in Latin-1, not {text!r}")
    return text.strip()


def _proxy(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise argparse.ArgumentTypeError(f"give a URL like http://host:3128, not {text!r}")
    if parts.scheme.startswith("socks") and find_spec("socks") is None:
        raise argparse.ArgumentTypeError("a SOCKS proxy needs the Python package PySocks, which is not installed")
    return text


class _AddHeader(argparse.Action):
    """Adds a header to those that were given before."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        found = _HEADER.fullmatch(str(values))
        if found is None or not _ONE_LINE.fullmatch(found[2]):
            raise argparse.ArgumentError(self, f"give 'Name: value', in one line and in Latin-1, not {values!r}")
        name, value = found[1], found[2].strip()
        headers: dict[str, str] = getattr(namespace, self.dest)
        if name.lower() in map(str.lower, headers):
            raise argparse.ArgumentError(self, f"{name} is given twice")
        setattr(namespace, self.dest, {**headers, name: value})
