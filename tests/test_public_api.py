"""The public surface: names and signatures, as callers of ultimate-sitemap-parser 1.8.1 know them."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import usp
from usp.exceptions import NoWebClientException, SitemapException, UspError
from usp.fetch_parse import SitemapFetcher, SitemapStrParser
from usp.web_client.abstract_client import RETRYABLE_HTTP_STATUS_CODES

pytestmark = pytest.mark.wheel

NAMES = {
    "usp.tree": "sitemap_tree_for_homepage sitemap_from_str sitemap_from_bytes sitemap_from_file"
    " stream_sitemaps_for_homepage stream_pages_for_homepage",
    "usp.aio": "sitemap_tree_for_homepage stream_sitemaps_for_homepage stream_pages_for_homepage",
    "usp.stream": "SitemapStream AsyncSitemapStream",
    "usp.fetch_parse": "SitemapFetcher SitemapStrParser AbstractSitemapParser IndexRobotsTxtSitemapParser"
    " PlainTextSitemapParser XMLSitemapParser AbstractXMLSitemapParser IndexXMLSitemapParser PagesXMLSitemapParser"
    " PagesRSSSitemapParser PagesAtomSitemapParser",
    "usp.objects.page": "SITEMAP_PAGE_DEFAULT_PRIORITY SitemapPage SitemapNewsStory SitemapImage SitemapVideo"
    " SitemapPageChangeFrequency",
    "usp.objects.sitemap": "AbstractSitemap InvalidSitemap AbstractPagesSitemap PagesXMLSitemap PagesTextSitemap"
    " PagesRSSSitemap PagesAtomSitemap AbstractIndexSitemap IndexWebsiteSitemap IndexXMLSitemap IndexRobotsTxtSitemap",
    "usp.web_client.abstract_client": "AbstractWebClient AbstractWebClientResponse AbstractWebClientSuccessResponse"
    " WebClientErrorResponse NoWebClientException LocalWebClient LocalWebClientSuccessResponse RequestWaiter"
    " RETRYABLE_HTTP_STATUS_CODES",
    "usp.web_client.requests_client": "RequestsWebClient RequestsWebClientErrorResponse"
    " RequestsWebClientSuccessResponse",
    "usp.web_client.asyncio_client": "AsyncioWebClient",
    "usp.web_client.aiohttp_client": "AiohttpWebClient AiohttpWebClientErrorResponse AiohttpWebClientSuccessResponse",
    "usp.web_client.http_client": "AbstractHTTPClient AbstractAsyncHTTPClient HTTPRequest HTTPAnswer AsyncHTTPAnswer"
    " HTTPSuccessResponse",
    "usp.helpers": "is_http_url html_unescape_strip parse_iso8601_date parse_rfc2822_date"
    " get_url_retry_on_client_errors gunzip ungzipped_response_content strip_url_to_homepage RecurseCallbackType"
    " RecurseListCallbackType",
    "usp.exceptions": "SitemapException SitemapXMLParsingException GunzipException StripURLToHomepageException",
    "usp.cli": "main",
    "usp.cli.cli": "main",
    "usp.check": "CheckedSitemap Report check check_bytes check_homepage check_path check_tree explain",
    "usp.export": "SCHEMA_VERSION Exported export_homepage write",
    "usp.objects.problem": "Problem Problems",
    "usp.objects.codes": "CODES Severity",
    "usp.objects.dates": "aware",
    "usp.objects.outcome": "Cause Missing Outcome OutcomeKind",
    "usp.objects.transport": "Transport",
}

SIGNATURES = {
    "usp.tree.sitemap_tree_for_homepage": "homepage_url, web_client=None, use_robots=True, use_known_paths=True,"
    " extra_known_paths=None, recurse_callback=None, recurse_list_callback=None, normalize_homepage_url=True",
    "usp.tree.stream_sitemaps_for_homepage": "homepage_url, web_client=None",
    "usp.tree.stream_pages_for_homepage": "homepage_url, web_client=None",
    "usp.aio.stream_sitemaps_for_homepage": "homepage_url, web_client=None",
    "usp.aio.stream_pages_for_homepage": "homepage_url, web_client=None",
    "usp.stream.SitemapStream": "homepage_url, web_client=None",
    "usp.tree.sitemap_from_str": "content",
    "usp.tree.sitemap_from_bytes": "content, url=None",
    "usp.tree.sitemap_from_file": "path",
    "usp.fetch_parse.SitemapFetcher": "url, recursion_level, web_client=None, parent_urls=None, quiet_404=False,"
    " recurse_callback=None, recurse_list_callback=None",
    "usp.fetch_parse.SitemapStrParser": "static_content",
    "usp.objects.page.SitemapPage": "url, priority=Decimal('0.5'), last_modified=None, change_frequency=None,"
    " news_story=None, images=None, alternates=None, videos=None",
    "usp.objects.page.SitemapImage": "loc, caption=None, geo_location=None, title=None, license_=None",
    "usp.objects.sitemap.InvalidSitemap": "url, reason",
    "usp.objects.sitemap.PagesXMLSitemap": "url, pages",
    "usp.objects.sitemap.IndexXMLSitemap": "url, sub_sitemaps",
    "usp.web_client.abstract_client.WebClientErrorResponse": "message, retryable",
    "usp.web_client.abstract_client.LocalWebClientSuccessResponse": "url, data",
    "usp.web_client.abstract_client.RequestWaiter": "wait=None, random_wait=True",
    "usp.web_client.http_client.HTTPAnswer": "url, status, reason, headers, read, close=None",
    "usp.web_client.http_client.AsyncHTTPAnswer": "url, status, reason, headers, read, close=None",
    "usp.web_client.http_client.AbstractHTTPClient.send": "self, request",
    "usp.web_client.http_client.AbstractAsyncHTTPClient.send": "self, request",
    "usp.web_client.requests_client.RequestsWebClient": "verify=True, wait=None, random_wait=False, session=None",
    "usp.web_client.requests_client.RequestsWebClient.set_timeout": "self, timeout",
    "usp.web_client.requests_client.RequestsWebClient.set_proxies": "self, proxies",
    "usp.web_client.requests_client.RequestsWebClient.set_max_response_data_length": "self, max_response_data_length",
    "usp.check.check": "targets, web_client=None",
    "usp.check.check_homepage": "homepage_url, web_client=None",
    "usp.check.check_tree": "tree",
    "usp.check.check_path": "path",
    "usp.check.check_bytes": "content",
    "usp.check.explain": "code",
    "usp.export.write": "tree, path",
    "usp.export.export_homepage": "homepage_url, path, web_client=None",
    "usp.objects.sitemap.AbstractSitemap.to_arrow": "self, table='pages'",
    "usp.objects.sitemap.AbstractSitemap.to_pandas": "self, table='pages'",
    "usp.objects.sitemap.AbstractSitemap.to_polars": "self, table='pages'",
    "usp.objects.sitemap.AbstractSitemap.to_duckdb": "self, database=':memory:'",
    "usp.helpers.get_url_retry_on_client_errors": "url, web_client, retry_count=5, sleep_between_retries=1,"
    " quiet_404=False",
    "usp.helpers.gunzip": "data, max_output_bytes=None",
    "usp.helpers.ungzipped_response_content": "url, response, max_uncompressed_bytes=None",
}


def find(path: str) -> object:
    module, *rest = path.split(".")
    found: object = importlib.import_module(module)
    for name in rest:
        module += f".{name}"
        if not hasattr(found, name):
            importlib.import_module(module)
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("module", NAMES)
def test_names(module: str) -> None:
    """Every public name exists and is in `__all__`."""
    found = importlib.import_module(module)
    for name in NAMES[module].split():
        assert hasattr(found, name)
        assert name in found.__all__


@pytest.mark.parametrize("path", SIGNATURES)
def test_signatures(path: str) -> None:
    """Positional parameters are those of 1.8.1 in the same order with the same defaults; new ones are keyword-only."""
    parameters = inspect.signature(find(path)).parameters.values()  # type: ignore[arg-type]
    positional = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in parameters
        if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
    ]
    assert ", ".join(positional) == SIGNATURES[path]


def test_import_usp_offers_the_front_doors() -> None:
    """Every name in `usp.__all__` can be imported from `usp`, and is the object of its module."""
    for name in usp.__all__:
        assert getattr(usp, name) is not None
    assert usp.sitemap_tree_for_homepage is find("usp.tree.sitemap_tree_for_homepage")
    assert usp.SitemapPage is find("usp.objects.page.SitemapPage")
    assert set(usp.__all__) <= set(dir(usp))
    with pytest.raises(AttributeError, match="nosuch"):
        usp.nosuch  # noqa: B018 -- the access is what is tested


def test_import_of_all_names_keeps_the_builtin_open() -> None:
    """`from usp import *` brings all public names but `open`, which would replace the builtin."""
    names: dict[str, object] = {}
    exec("from usp import *", names)  # noqa: S102 -- a star import is not allowed in a function
    assert "open" not in names
    assert names["sitemap_tree_for_homepage"] is usp.sitemap_tree_for_homepage
    assert usp.open is find("usp.sources.open")
    assert "open" in dir(usp)


@pytest.mark.parametrize("module", ["usp", "usp.tree"])
def test_imports_stay_light(module: str) -> None:
    """Importing a front door imports nothing from outside the standard library, such as requests."""
    program = (
        f"import sys; before = set(sys.modules); import {module};"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of_cython = ("_cython_", "cython_runtime")  # what a compiled module brings with it
    assert [name for name in found.stdout.split() if not name.startswith(of_cython)] == ["usp"]


def test_parsers_are_the_classes_that_do_the_work() -> None:
    """Each parser of pages has the class of its entries as an attribute."""
    for parser, names in {"PagesXML": ["Page", "Image"], "PagesRSS": ["Page"], "PagesAtom": ["Page"]}.items():
        for name in names:
            assert inspect.isclass(find(f"usp.fetch_parse.{parser}SitemapParser.{name}"))


def test_one_base_of_all_exceptions() -> None:
    """All exceptions of usp have one base class, except the keyboard interrupt."""
    exceptions = importlib.import_module("usp.exceptions")
    assert all(issubclass(getattr(exceptions, name), (UspError, KeyboardInterrupt)) for name in exceptions.__all__)
    assert issubclass(NoWebClientException, UspError)


@pytest.mark.parametrize("url", ["", "ftp://h/", "h.example", "http://", None])
def test_fetcher_refuses_other_urls(url: str) -> None:
    """A fetcher refuses URLs that are not http or https."""
    with pytest.raises(SitemapException, match="is not an HTTP"):
        SitemapFetcher(url, 0)


def test_fetcher_refuses_loops() -> None:
    """A fetcher refuses a URL that is among its parents, and a level past 11."""
    with pytest.raises(SitemapException, match="Recursion detected in URL http://h/a with parent URLs"):
        SitemapFetcher("http://h/a", 1, parent_urls={"http://h/a"})
    with pytest.raises(SitemapException, match="Recursion level exceeded 11 for URL http://h/a"):
        SitemapFetcher("http://h/a", 12)
    assert SitemapFetcher("http://h/a", 11).recursion_level == 11


def test_str_parser_wants_a_str() -> None:
    """SitemapStrParser refuses bytes, and the message names the function to use."""
    with pytest.raises(SitemapException, match="sitemap_from_bytes"):
        SitemapStrParser(b"<urlset/>")  # type: ignore[arg-type]


def test_retryable_statuses() -> None:
    """A request is retried after these statuses, and no others."""
    expected = {400, 408, 429, 499, 500, 502, 503, 504, 509, *range(520, 528), 530, 598}
    assert expected == RETRYABLE_HTTP_STATUS_CODES
