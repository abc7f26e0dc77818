"""The options of `usp ls`: how they are written, and what they are to the front doors and the web client."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from usp.cli.output import say
from usp.limits import Limits
from usp.objects.problem import printable
from usp.politeness import Politeness

if TYPE_CHECKING:
    from usp.web_client.requests_client import RequestsWebClient

__all__ = [
    "add_messages",
    "add_site_options",
    "client_for",
    "refusal",
    "site_url",
    "tree_options",
    "warn",
]

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_ONE_LINE = re.compile(r"[\t -~\x80-\xff]*")  # what may stand in a header
_CROSS_HOST = {
    "allow": "any host",
    "same-site": "also www, news, ... of the same example.org",
    "same-host": "the site's own host only",
}
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_MAX_SECONDS_TO_CONNECT = 10.0
_MAX_CONCURRENCY = 1_000  # as the front doors have it
_MAX_SECONDS = 1_000_000  # eleven days; a system cannot wait for any length of time
_MOST_DIGITS = 18  # whatever is longer is as good as no limit
_FRAMING = ("connection", "content-length", "host", "transfer-encoding")

if TYPE_CHECKING:
    Group = argparse._ArgumentGroup


def add_messages(group: Group) -> None:
    """Add the options that say what is told on standard error."""
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary and no warnings")
    group.add_argument("-v", "--verbose", action="count", default=0, help="log more (-v: INFO, -vv: DEBUG)")
    group.add_argument("-l", "--log-file", metavar="FILE", help="append the log to this file, not to standard error")


def add_site_options(parser: argparse.ArgumentParser, what: str = "what is fetched") -> None:
    """Add the options of all commands that fetch a site."""
    _add_sources(parser.add_argument_group(what))
    _add_fetching(parser.add_argument_group("how it is fetched"))
    _add_limits(parser.add_argument_group("limits"))


def _add_sources(group: Group) -> None:
    """Add the options that say what is fetched."""
    group.add_argument("-r", "--no-robots", action="store_true", help="don't discover sitemaps through robots.txt")
    group.add_argument("-k", "--no-known", action="store_true", help="don't discover sitemaps through well-known URLs")
    group.add_argument("--respect-robots", action="store_true", help="leave out sitemaps that robots.txt disallows")
    group.add_argument(
        "--extra-path",
        action="append",
        type=_path,
        default=[],
        metavar="PATH",
        help="look for a sitemap at this path, too; may be given\nseveral times",
    )
    hosts = "\n".join(f"  {name}: {what}" for name, what in _CROSS_HOST.items())
    group.add_argument(
        "--cross-host",
        choices=_CROSS_HOST,
        default="allow",
        metavar="WHICH",
        help=f"which hosts sitemaps may be on (default: %(default)s)\n{hosts}",
    )


def _add_fetching(group: Group) -> None:
    """Add the options that say how it is fetched."""
    group.add_argument(
        "-c",
        "--concurrency",
        type=_number_of("requests", _MAX_CONCURRENCY),
        metavar="N",
        help=f"requests at once to one host (default: 8; at most {_MAX_CONCURRENCY:,})",
    )
    group.add_argument(
        "--spacing",
        type=_seconds_from(0),
        default=0.0,
        metavar="SECONDS",
        help="the time between the starts of two requests to one\nhost, at least (default: 0)",
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


def _add_limits(group: Group) -> None:
    """Add the options that say where to end."""
    limits = Limits()
    group.add_argument(
        "--max-pages", type=_number_of("pages"), metavar="N", help="end after so many pages (default: none)"
    )
    group.add_argument(
        "--max-sitemaps",
        type=_number_of("sitemaps"),
        metavar="N",
        help=f"end after so many sitemaps (default: {limits.max_sitemaps:,})",
    )
    group.add_argument(
        "--max-time",
        type=_seconds_from(0.001),
        metavar="SECONDS",
        help=f"end after so long, with what was had (default: {limits.tree_seconds:g})",
    )
    group.add_argument(
        "--timeout",
        type=_seconds_from(0.001),
        metavar="SECONDS",
        help=f"for one request in all (default: {limits.request_seconds:g}); unless this is\nset, a connection is"
        " given 9 s, and a pause between\ntwo reads 60 s",
    )


def tree_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options, as the front doors take them."""
    limits = {
        "max_pages": arguments.max_pages,
        "max_sitemaps": arguments.max_sitemaps,
        "tree_seconds": arguments.max_time,
        "request_seconds": arguments.timeout,
    }
    return {
        "use_robots": not arguments.no_robots,
        "use_known_paths": not arguments.no_known,
        "extra_known_paths": arguments.extra_path,
        "concurrency": arguments.concurrency,
        "limits": Limits(**{name: value for name, value in limits.items() if value is not None}),
        "politeness": Politeness(spacing=arguments.spacing, crawl_delay=arguments.crawl_delay),
        "respect_robots": arguments.respect_robots,
        "cross_host": arguments.cross_host,
    }


def warn(arguments: argparse.Namespace, url: str, whole_site: str) -> None:
    """Say what may not be what was meant: that nothing is verified, and, if the URL has a path, what it stands for."""
    if arguments.insecure:
        say("usp: warning: TLS certificates are not verified (--insecure)")
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and (parts.path not in ("", "/") or parts.query):
        host = parts.netloc.rpartition("@")[2]
        say(f"usp: {whole_site.format(printable(f'{parts.scheme}://{host}/'))}")


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


def refusal(arguments: argparse.Namespace) -> str | None:
    """What is wrong with the options together."""
    if arguments.no_robots and arguments.no_known:
        return "with both -r/--no-robots and -k/--no-known there is nowhere to look for sitemaps"
    if arguments.extra_path and arguments.no_known:
        return "--extra-path is one more well-known URL, and -k/--no-known leaves them all out"
    return None


def site_url(text: str) -> str:
    """A URL that can be taken apart. Whether it is that of a site, the front doors say."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"give one like https://example.org/, not {text!r}") from None
    try:
        _ = parts.port
    except ValueError:
        port = parts.netloc.rpartition(":")[2]
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {port!r}") from None
    return text


def _path(text: str) -> str:
    if not text.strip("/ ") or "://" in text:
        raise argparse.ArgumentTypeError(f"give a path like my-sitemap.xml, not {text!r}")
    return text


def _number_of(what: str, most: int | None = None) -> Callable[[str], int]:
    """Takes a number of them, not more than `most`."""
    expected = "1 or more" if most is None else f"from 1 to {most:,}"

    def number(text: str) -> int:
        is_number = text.isascii() and text.isdigit()
        found = int(text) if is_number and len(text) <= _MOST_DIGITS else sys.maxsize if is_number else 0
        if not 1 <= found <= (most or sys.maxsize):
            raise argparse.ArgumentTypeError(f"give a number of {what}, {expected}, not {text!r}")
        return found

    return number


def _seconds_from(least: float) -> Callable[[str], float]:
    """Takes a number of seconds, not less than `least`."""

    def seconds(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= _MAX_SECONDS:
            raise argparse.ArgumentTypeError(
                f"give a number of seconds, from {least:g} to {_MAX_SECONDS:,}, not {text!r}"
            )
        return found

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
        if name.lower() in _FRAMING:
            raise argparse.ArgumentError(self, f"{name} follows from the request itself, and cannot be set")
        headers: dict[str, str] = getattr(namespace, self.dest)
        if name.lower() in map(str.lower, headers):
            raise argparse.ArgumentError(self, f"{name} is given twice")
        setattr(namespace, self.dest, {**headers, name: value})
