"""Websites drawn from a distribution, always the same for a seed, and a server for them on loopback.

| what | how it is drawn |
|---|---|
| sitemaps of a site | 1 + a lognormal number, median 3, sigma 1; at most 1,000 |
| seconds until each of its answers | lognormal, sigma 0.8; at most 10 |
| its domain | its own; one site in ten is at one of the large providers, with weights 1, 1/2, 1/3, ... |
| silent sites | one in fifty accepts connections and never answers |

These are assumptions: they have the heavy tails of the real web, and not its figures.

`drawn_sites.py COUNT SEED SECONDS` serves them, each at an address of its own, and prints the port. A sitemap lists 100
pages. An answer has an ETag, and a request with any ETag gets 304. Silent sites answer as all others. The process ends
when its standard input does.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from dataclasses import dataclass
from functools import cache, partial
from math import log
from random import Random

from bench.servers import Connection, response

__all__ = ["DrawnSite", "draw_sites"]

_MAX_SITEMAPS = 1_000
_MAX_SECONDS = 10.0
_PROVIDER_SHARE = 0.1
_SITES_PER_PROVIDER = 1_000  # of all sites, drawn or not: a list of a million has a thousand providers
_SILENT_SHARE = 0.02
_PAGES = 100
_HOST = b"{host}"  # stands for the host in documents that all sites share
_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@dataclass(frozen=True, slots=True)
class DrawnSite:
    """A site: the address of its server, its domain, and how it answers."""

    address: str
    domain: str
    sitemaps: int
    seconds: float  #: until each answer
    is_silent: bool

    @property
    def requests(self) -> int:
        """What a crawl requests: robots.txt, the index and the sitemaps."""
        return 2 + self.sitemaps


def draw_sites(count: int, seed: int, median_seconds: float) -> list[DrawnSite]:
    """Return that many sites; the first of them are the same for any count below 250,000."""
    random = Random(seed)  # noqa: S311 -- not a secret
    providers = range(1, count // _SITES_PER_PROVIDER + 2)
    weights = [1 / rank for rank in providers]
    found = []
    for number in range(count):
        sitemaps = min(_MAX_SITEMAPS, 1 + int(random.lognormvariate(log(3), 1)))
        seconds = min(_MAX_SECONDS, random.lognormvariate(0, 0.8) * median_seconds)
        kind = random.random()
        provider = random.choices(providers, weights)[0]
        address = f"127.{1 + number // 62_500}.{number // 250 % 250}.{number % 250 + 1}"
        domain = f"provider-{provider}.example" if kind < _PROVIDER_SHARE else address
        found.append(DrawnSite(address, domain, sitemaps, seconds, kind > 1 - _SILENT_SHARE))
    return found


# Serving them


class _Answers(Connection):
    """Answers the requests of one connection. The Host header says which site is meant."""

    def __init__(self, sites: dict[str, DrawnSite]) -> None:
        super().__init__({}, 0)
        self._sites = sites

    def data_received(self, data: bytes) -> None:
        """Schedule a response to each request that is complete."""
        *heads, self._received = (self._received + data).split(b"\r\n\r\n")
        for head in heads:
            path = head.split(b" ", 2)[1].decode()
            host = head.partition(b"\r\nHost: ")[2].partition(b"\r\n")[0].decode()
            found = self._sites[host.partition(":")[0]]
            if b"\r\nIf-None-Match:" in head:
                answer = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
            else:
                answer = response(_body(path, found.sitemaps).replace(_HOST, host.encode()), 'text/xml\r\nETag: "1"')
            if found.seconds:
                asyncio.get_running_loop().call_later(found.seconds, self._write, answer)
            else:
                self._write(answer)


@cache
def _body(path: str, sitemaps: int) -> bytes:
    """Return what any site with so many sitemaps has at a path, with `_HOST` for its host."""
    site = f"http://{_HOST.decode()}"
    if path == "/robots.txt":
        return f"User-agent: *\nSitemap: {site}/index.xml\n".encode()
    if path == "/index.xml":
        entries = "".join(f"<sitemap><loc>{site}/{number}.xml</loc></sitemap>\n" for number in range(sitemaps))
        return f"<sitemapindex {_XMLNS}>\n{entries}</sitemapindex>\n".encode()
    day = "<lastmod>2026-01-02</lastmod>"
    urls = (f"{site}{path.removesuffix('.xml')}/page-{number}" for number in range(_PAGES))
    return f"<urlset {_XMLNS}>\n{''.join(f'<url><loc>{url}</loc>{day}</url>' for url in urls)}</urlset>\n".encode()


async def _serve(sites: dict[str, DrawnSite]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(_Answers, sites), "0.0.0.0", 0, backlog=4_096)  # noqa: S104 -- all of loopback
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serve what the command line says."""
    count, seed, seconds = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve({site.address: site for site in draw_sites(int(count), int(seed), float(seconds))}))


if __name__ == "__main__":
    main()
