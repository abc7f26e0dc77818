"""The options that every command shares: targets, what to fetch, how, and limits; and the web client of a command."""

from __future__ import annotations

import argparse
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from usp.exceptions import InvalidArgumentError
from usp.export.selection import datetime_of
from usp.limits import DEFAULT_CONCURRENCY, MAX_CONCURRENCY, MAX_PAGES, Limits
from usp.origins import HostPatterns, masked_url
from usp.politeness import Politeness

if TYPE_CHECKING:
    from usp.web_client.requests_client import RequestsWebClient

    Group = argparse._ArgumentGroup
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = [
    "add_message_options",
    "add_partial_options",
    "add_since_option",
    "add_site_options",
    "add_targets",
    "async_client_options",
    "count_of",
    "site_client",
    "tree_options",
]

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_HEADER_TEXT = re.compile(r"[\t -~\x80-\xff]*")
_FRAMING_HEADERS = ("connection", "content-length", "host", "transfer-encoding")
_CROSS_HOST = {
    "allow": "any host",
    "same-site": "also www, news, ... of the same example.org",
    "same-host": "the site's own host only",
}
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_MAX_SECONDS_TO_CONNECT = 10.0
_SPAN = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_SECONDS_OF = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_MAX_SECONDS = 1_000_000  # eleven days; operating systems refuse to wait much longer
_MAX_DIGITS = 18  # a longer number is as good as no limit


def add_targets(parser: argparse.ArgumentParser, metavar: str = "TARGET") -> None:
    """Add the targets of a command, and the options that say what they are."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar=metavar,
        help="a site (example.org), the URL of a site or of a sitemap,\na file, a folder, a .zip, a web archive"
        " (WARC, WACZ),\na crawl folder, or - for standard input; or several of\nthese",
    )
    group = parser.add_argument_group("what targets are")
    how = group.add_mutually_exclusive_group()
    how.add_argument("--site", action="store_true", help="read the whole site of a URL, whatever is at the URL")
    how.add_argument("--sitemap", action="store_true", help="read only the sitemap at a URL, and what is below it")
    group.add_argument(
        "--url",
        type=_site_url,
        metavar="URL",
        help="the URL where the file or folder will be served; for a\nweb archive or a crawl folder, the site to read",
    )


def add_partial_options(group: Group, *, has_file: bool = True) -> None:
    """Add the options that say what to do with partial results."""
    group.add_argument(
        "--strict",
        action="store_true",
        help="write nothing if any sitemap is missing, even one that\ndoes not exist; exit with 4 then",
    )
    if has_file:
        group.add_argument(
            "--keep-partial", action="store_true", help="after Ctrl-C, write what was read so far to FILE"
        )


def add_since_option(group: Group, what: str) -> None:
    """Add the options that choose pages and sitemaps by date."""
    group.add_argument(
        "--since",
        metavar="DATE",
        help=f"{what} only pages modified since this date: 2025-01-01;\nor 7d, 12h, 4w for that long ago. Skip sitemaps"
        " that\ntheir index says are older",
    )
    group.add_argument("--no-prune", action="store_true", help="with --since, read older sitemaps, too")


def add_message_options(group: Group, quiet: str = "show no progress, no summary and no warnings") -> None:
    """Add the options for messages and the log. `quiet` says what -q does."""
    group.add_argument("-q", "--quiet", action="store_true", help=quiet)
    group.add_argument("-v", "--verbose", action="count", default=0, help="show the log (-v: INFO, -vv: DEBUG)")
    group.add_argument("-l", "--log-file", metavar="FILE", help="append the log to this file, not to standard error")


#: What `--concurrency` is if it is not given, for the help.
_USUAL_CONCURRENCY = f"default: {DEFAULT_CONCURRENCY}; at most {MAX_CONCURRENCY:,}"


def add_site_options(
    parser: argparse.ArgumentParser, title: str = "what to fetch", concurrency: str = _USUAL_CONCURRENCY
) -> None:
    """Add the options of every command that fetches a site.

    :param concurrency: what the help says about the number of requests at once.
    """
    _add_source_options(parser.add_argument_group(title))
    _add_request_options(parser.add_argument_group("how to fetch"), concurrency)
    _add_limit_options(parser.add_argument_group("limits"))


def _add_source_options(group: Group) -> None:
    group.add_argument("-r", "--no-robots", action="store_true", help="don't look for sitemaps in robots.txt")
    group.add_argument("-k", "--no-known", action="store_true", help="don't try known paths such as /sitemap.xml")
    group.add_argument("--respect-robots", action="store_true", help="skip sitemaps that robots.txt disallows")
    group.add_argument(
        "--extra-path",
        action="append",
        type=_path,
        default=[],
        metavar="PATH",
        help="also look for a sitemap at this path; repeat the option\nfor more paths",
    )
    for option, what in (("include", "fetch only"), ("exclude", "skip")):
        group.add_argument(
            f"--{option}",
            action="append",
            type=_pattern,
            default=[],
            metavar="REGEX",
            help=f"{what} sitemaps whose URL matches this regular\nexpression in any part, and those below; repeatable",
        )
    hosts = "\n".join(f"  {name}: {what}" for name, what in _CROSS_HOST.items())
    group.add_argument(
        "--cross-host",
        choices=_CROSS_HOST,
        default="allow",
        metavar="WHICH",
        help=f"hosts to fetch sitemaps from (default: %(default)s)\n{hosts}",
    )
    group.add_argument(
        "--allow-host",
        action="append",
        type=_host,
        default=[],
        metavar="HOST",
        help="also fetch from this private host: 10.0.0.5, 10.0.0.0/8,\na.corp.example or '*.corp.example'; repeatable",
    )


def _add_request_options(group: Group, concurrency: str) -> None:
    group.add_argument(
        "-c",
        "--concurrency",
        type=count_of("requests", MAX_CONCURRENCY),
        metavar="N",
        help=f"requests at once to one host ({concurrency})",
    )
    group.add_argument(
        "--spacing",
        type=_seconds_from(0),
        default=0.0,
        metavar="SECONDS",
        help="start requests to one host at least this far apart\n(default: 0)",
    )
    group.add_argument("--crawl-delay", action="store_true", help="wait as long as Crawl-delay in robots.txt asks")
    group.add_argument("--user-agent", type=_user_agent, metavar="TEXT", help="User-Agent header to send")
    group.add_argument(
        "-H",
        "--header",
        action=_AddHeader,
        default={},
        metavar="'NAME: VALUE'",
        help="send this header, only to the site's own scheme, host\nand port; repeat the option for more headers",
    )
    group.add_argument("--proxy", type=_proxy, metavar="URL", help="use a proxy: http://user:password@host:3128")
    group.add_argument("--insecure", action="store_true", help="don't verify TLS certificates")


def _add_limit_options(group: Group) -> None:
    limits = Limits()
    group.add_argument(
        "--max-pages",
        type=count_of("pages"),
        default=MAX_PAGES,
        metavar="N",
        help=f"stop after this many pages (default: {MAX_PAGES:,})",
    )
    group.add_argument(
        "--max-sitemaps",
        type=count_of("sitemaps"),
        metavar="N",
        help=f"stop after this many sitemaps (default: {limits.max_sitemaps:,})",
    )
    group.add_argument(
        "--max-time",
        type=_seconds_from(0.001),
        metavar="TIME",
        help="stop fetching and parsing after this long, and keep what\nhas been read"
        f"; in seconds, or like 30m, 2h\n(default: {limits.tree_seconds:g})",
    )
    group.add_argument(
        "--timeout",
        type=_seconds_from(0.001),
        metavar="SECONDS",
        help=f"give up on a request after this long (default: {limits.request_seconds:g},\nwith 9 to connect and 60"
        " between two reads)",
    )


def tree_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options as keyword arguments of the front doors."""
    limits = {
        "max_pages": arguments.max_pages,
        "max_sitemaps": arguments.max_sitemaps,
        "tree_seconds": arguments.max_time,
        "request_seconds": arguments.timeout,
    }
    is_pruned = getattr(arguments, "since", None) is not None and not arguments.no_prune
    return {
        "include": arguments.include,
        "exclude": arguments.exclude,
        "modified_since": datetime_of("--since", arguments.since) if is_pruned else None,
        "use_robots": not arguments.no_robots,
        "use_known_paths": not arguments.no_known,
        "extra_known_paths": arguments.extra_path,
        "concurrency": arguments.concurrency,
        "limits": Limits(**{name: value for name, value in limits.items() if value is not None}),
        "politeness": Politeness(spacing=arguments.spacing, crawl_delay=arguments.crawl_delay),
        "respect_robots": arguments.respect_robots,
        "cross_host": arguments.cross_host,
        "allow_hosts": arguments.allow_host,
    }


@contextmanager
def site_client(arguments: argparse.Namespace) -> Iterator[RequestsWebClient]:
    """Open the web client that the options ask for, without urllib3's own warning about --insecure."""
    with warnings.catch_warnings(), _client_for(arguments) as client:
        warnings.filterwarnings("ignore", "Unverified HTTPS request")
        yield client


def _client_for(arguments: argparse.Namespace) -> RequestsWebClient:
    from usp.web_client.requests_client import RequestsWebClient  # imported only when needed: requests is heavy

    client = RequestsWebClient(
        verify=not arguments.insecure, user_agent=arguments.user_agent, headers=arguments.header or None
    )
    if arguments.proxy is not None:
        client.set_proxies({"http": arguments.proxy, "https": arguments.proxy})
    if arguments.timeout is not None:
        # The client's own timeouts are for parts of a request and must not end one that has time left.
        client.set_timeout((min(arguments.timeout, _MAX_SECONDS_TO_CONNECT), arguments.timeout))
    return client


def async_client_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the same options as keyword arguments of an `AsyncioWebClient`."""
    given: dict[str, Any] = {
        "verify": not arguments.insecure,
        "user_agent": arguments.user_agent,
        "headers": arguments.header or None,
        "proxy": arguments.proxy,
    }
    if arguments.timeout is not None:
        given["timeout"] = (min(arguments.timeout, _MAX_SECONDS_TO_CONNECT), arguments.timeout)
    return given


def _site_url(text: str) -> str:
    """Check that a URL can be split into its parts. The front doors check the rest."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"give a URL like https://example.org/, not {masked_url(text)}") from None
    try:
        _ = parts.port
    except ValueError:
        if "@" in text.partition(parts.netloc)[2]:  # what looks like a port is a part of a password
            raise argparse.ArgumentTypeError(f"give a URL like https://example.org/, not {masked_url(text)}") from None
        port = parts.netloc.rpartition(":")[2]
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {port!r}") from None
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _host(text: str) -> str:
    try:
        HostPatterns([text])
    except InvalidArgumentError:
        raise argparse.ArgumentTypeError(
            f"give a host, an address or a network, such as files.corp.example or 10.0.0.5, not {text!r}"
        ) from None
    return text


def _path(text: str) -> str:
    if not text.strip("/ ") or "://" in text:
        raise argparse.ArgumentTypeError(f"give a path like my-sitemap.xml, not {text!r}")
    return text


def count_of(what: str, most: int | None = None) -> Callable[[str], int]:
    """Return a parser for an integer from 1 to `most`."""
    expected = "1 or more" if most is None else f"from 1 to {most:,}"

    def count(text: str) -> int:
        is_number = text.isascii() and text.isdigit()
        value = int(text) if is_number and len(text) <= _MAX_DIGITS else sys.maxsize if is_number else 0
        if not 1 <= value <= (most or sys.maxsize):
            raise argparse.ArgumentTypeError(f"give a number of {what}, {expected}, not {text!r}")
        return value

    return count


def _seconds_from(least: float) -> Callable[[str], float]:
    """Return a parser for a number of seconds, at least `least`, or a time span such as 30m."""

    def seconds(text: str) -> float:
        span = _SPAN.fullmatch(text)
        try:
            value = int(span[1]) * _SECONDS_OF[span[2]] if span else float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= _MAX_SECONDS:
            raise argparse.ArgumentTypeError(
                f"give a number of seconds, from {least:g} to {_MAX_SECONDS:,}, or a time like 30m or 2h, not {text!r}"
            )
        return value

    return seconds


def _user_agent(text: str) -> str:
    if not text.strip() or not _HEADER_TEXT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"give one line of Latin-1 text, not {text!r}")
    return text.strip()


def _proxy(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise argparse.ArgumentTypeError(f"give a URL like http://host:3128, not {masked_url(text)}")
    if parts.scheme.startswith("socks") and find_spec("socks") is None:
        raise argparse.ArgumentTypeError("a SOCKS proxy needs the Python package PySocks; run: pip install pysocks")
    return text


class _AddHeader(argparse.Action):
    """Add a header to those given before."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        header = _HEADER.fullmatch(str(values))
        if header is None or not _HEADER_TEXT.fullmatch(header[2]):
            shown = f", not '{name}: ***'" if (name := str(values).partition(":")[0]) != values else ""
            raise argparse.ArgumentError(self, f"give 'Name: value', one line of Latin-1 text{shown}")
        name, value = header[1], header[2].strip()
        if name.lower() in _FRAMING_HEADERS:
            raise argparse.ArgumentError(self, f"{name} cannot be set; it depends on the request")
        headers: dict[str, str] = getattr(namespace, self.dest)
        if name.lower() in map(str.lower, headers):
            raise argparse.ArgumentError(self, f"{name} is given twice")
        setattr(namespace, self.dest, {**headers, name: value})
