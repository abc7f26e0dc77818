"""Each view of the explorer in a browser: what it shows, how it filters, its links, its keys.

Every visit also fails if the console says something, if anything is asked of another host, or if an image is loaded.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from browser.conftest import ready
from browser.sites import ATTACKS, CHANGES, GLOBES, HOST, LARGE, MAPS, NEWS, RIGHT_TO_LEFT
from browser.visits import Visit, expect
from support import SITEMAP_XMLNS, urlset
from usp.view.explorer import Explorer
from usp.view.queries import QueryTimeout
from usp.view.server import Access, application
from viewing import Viewer, explored, viewing

uvicorn = pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.browser, pytest.mark.cli, pytest.mark.export, pytest.mark.network]

Opened = Callable[..., Visit]
PAGES = MAPS + GLOBES + NEWS + 7
VIEWS = ("overview", "sitemaps", "pages", "problems", "changes", "sql")


def test_the_overview_shows_the_site(visit: Opened, rich: Viewer) -> None:
    """The tiles, the timeline, the sections and the languages are those of the site."""
    page = visit(rich).page
    expect(page.locator(".tiles")).to_contain_text(f"Pages{PAGES}")
    expect(page.locator(".tiles")).to_contain_text("1 failed")
    expect(page.locator(".tiles")).to_contain_text("errors")
    expect(page.locator(".bars rect")).to_have_count(MAPS)
    expect(page.locator(".timeline")).to_contain_text(f"2023-01 to 2025-06: {MAPS} pages")
    expect(page.locator(".treemap a").first).to_have_accessible_name(f"shop {MAPS + GLOBES} pages 2024-03-15; zoom in")
    expect(page.get_by_role("region", name="Languages", exact=True)).to_contain_text("de30")
    for name in ("Freshest sections", "Stalest sections"):
        expect(page.get_by_role("region", name=name)).to_contain_text("shop")


def test_a_section_zooms_in_and_the_back_button_out(visit: Opened, rich: Viewer) -> None:
    """A click on a section shows the sections below it, and a click there its pages."""
    one = visit(rich)
    one.page.locator(".treemap a", has_text="shop").click()
    expect(one.page.locator(".crumbs")).to_have_text(re.compile("All sections.*www.example.org.*shop"))
    expect(one.page.locator(".treemap a")).to_have_count(2)
    assert one.state == "overview?section=www.example.org/shop"
    one.page.locator(".treemap a", has_text="maps").click()
    expect(one.page.locator(".crumbs")).to_contain_text("maps")
    one.page.go_back()
    one.page.go_back()
    expect(one.page.locator(".treemap a")).to_have_count(4)
    assert one.state == ""


def test_pages_directly_in_a_section(visit: Opened, rich: Viewer) -> None:
    """The cell of the pages that are in no deeper section leads to as many pages as it says."""
    one = visit(rich)
    cell = one.page.locator(".treemap a", has_text="(directly here)")
    expect(cell.locator("text").nth(1)).to_have_text("6 pages")
    cell.click()
    one.expect_rows("Pages", 6)
    one.button("Remove filter: Not in deeper sections").click()
    one.expect_rows("Pages", PAGES)


def test_keys_move_in_the_treemap(visit: Opened, rich: Viewer) -> None:
    """The map is one stop of the Tab key; arrows move in it, and Enter opens a section."""
    one = visit(rich)
    expect(one.page.locator(".treemap a")).to_have_count(4)
    assert one.page.locator(".treemap a[tabindex='0']").count() == 1
    one.page.locator(".treemap a").first.focus()
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("Enter")
    expect(one.page.locator(".crumbs")).to_contain_text("shop")


def test_a_drag_over_the_timeline_filters(visit: Opened, rich: Viewer) -> None:
    """Dragging over the bars of a year leaves the pages of that year."""
    one = visit(rich)
    bars = one.page.locator(".bars rect")
    expect(bars).to_have_count(MAPS)
    first, last = bars.nth(12).bounding_box(), bars.nth(23).bounding_box()
    assert first is not None
    assert last is not None
    one.page.mouse.move(first["x"] + 3, first["y"] + 20)
    one.page.mouse.down()
    one.page.mouse.move(last["x"] + 3, last["y"] + 30, steps=4)
    one.page.mouse.up()
    expect(one.page.locator(".summary")).to_contain_text(f"The filters match 12 of {PAGES} pages")
    assert one.state == "overview?from=2024-01-01&to=2024-12-31"
    one.button("Remove filter: From 2024-01-01").click()
    expect(one.page.locator(".summary")).to_contain_text("The filters match 24")


def test_overview_without_matches(visit: Opened, rich: Viewer) -> None:
    """When nothing matches, the page says what to do."""
    expect(visit(rich, "overview?q=nothing").page.locator(".summary")).to_contain_text("Remove a filter")


def test_sitemaps_are_a_tree_and_sort(visit: Opened, rich: Viewer) -> None:
    """Sitemaps are in the order of the tree, sort by any column, and a failed one says why."""
    one = visit(rich, "sitemaps")
    one.expect_rows("Sitemaps", 8)
    expect(one.row("Sitemaps", 0)).to_contain_text("/robots.txt")
    expect(one.row("Sitemaps", 7)).to_contain_text("no such file")
    one.button("Pages").click()
    assert one.state == "sitemaps?sort=-all_pages"
    expect(one.row("Sitemaps", 0)).to_contain_text(re.compile(rf"robots\.txt.*{PAGES}"))
    expect(one.row("Sitemaps", 2)).to_contain_text("/maps.xml")
    one.row("Sitemaps", 2).locator("[role=gridcell]").nth(1).click()
    expect(one.page.get_by_role("complementary")).to_contain_text(f"show {MAPS} pages")
    one.page.get_by_role("complementary").get_by_role("link", name=f"show {MAPS} pages").click()
    one.expect_rows("Pages", MAPS)
    assert one.state == f"pages?sitemap={HOST}/maps.xml"


@pytest.mark.parametrize("view", ["sitemaps", "pages"])
def test_titles_of_columns_have_room_for_the_mark_of_their_order(visit: Opened, rich: Viewer, view: str) -> None:
    """The arrow of the sorted column is not cut off."""
    one = visit(rich, view)
    one.page.locator(".grid-head button").first.wait_for()
    names = one.page.locator(".grid-head button").evaluate_all("all => all.map((one) => one.dataset.key)")
    narrow = []
    for name in names:
        one.go(f"{view}?sort=-{name}")
        head = one.page.locator(f".grid-head button[data-key={name}]")
        expect(head).to_contain_text("▼")
        room = head.evaluate(
            "one => [one, one.parentNode].map((node) => node.getBoundingClientRect())"
            ".flatMap(({left, right}) => [left, right])"
        )
        if room[0] < room[2] or room[1] > room[3]:
            narrow.append((name, room[2] - room[0], room[1] - room[3]))
    assert narrow == []


def test_a_failed_sitemap_says_why_in_its_row(visit: Opened, demo: Viewer) -> None:
    """The reason is whole, without the URL, which the row has already."""
    one = visit(demo, "sitemaps?q=missing")
    cell = one.row("Sitemaps", 0).get_by_role("gridcell").nth(2)
    expect(cell).to_have_text("Failed: 404 Not Found")
    assert cell.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_sitemaps_are_searched(visit: Opened, rich: Viewer) -> None:
    """The search leaves the sitemaps whose URL has the text."""
    one = visit(rich, "sitemaps")
    one.page.get_by_label("Search sitemaps").fill("NEWS")
    one.expect_rows("Sitemaps", 1)
    assert one.state == "sitemaps?q=NEWS"


FILTERS = {
    "q=/MAPS/": MAPS,
    "q=maps/0[0-4]$&regex=1": 5,
    f"section={HOST[8:]}/shop": MAPS + GLOBES,
    "from=2023-01-01&to=2023-12-31": 12,
    f"sitemap={HOST}/news.xml": NEWS,
    "language=de": MAPS,
    "problem=L302": 1,
    "has=videos": 1,
    "has=news": NEWS,
    "undated=1&has=images": GLOBES + 4,
}


@pytest.mark.parametrize("state", FILTERS)
def test_pages_are_filtered(visit: Opened, rich: Viewer, state: str) -> None:
    """A link to a filter shows its pages, and a chip for it."""
    one = visit(rich, f"pages?{state}")
    one.expect_rows("Pages", FILTERS[state])
    expect(one.page.locator(".chip").first).to_be_visible()
    expect(one.page.locator(".toolbar .summary")).to_have_text(f"{FILTERS[state]} of {PAGES} pages")


def test_typing_a_search_is_one_step_back(visit: Opened, rich: Viewer) -> None:
    """Typing filters while it goes on, and the back button undoes it at once."""
    one = visit(rich, "pages")
    one.expect_rows("Pages", PAGES)
    search = one.page.get_by_label("Search URLs")
    search.press_sequentially("glo", delay=20)
    one.expect_rows("Pages", GLOBES)
    search.press_sequentially("bes/01", delay=20)
    one.expect_rows("Pages", 1)
    one.page.go_back()
    one.expect_rows("Pages", PAGES)


def test_a_bad_expression_says_so(visit: Opened, rich: Viewer) -> None:
    """A regular expression that is wrong gives a message, and the page works on."""
    one = visit(rich, "pages?q=(&regex=1")
    one.allowed.append("400")
    expect(one.page.locator(".grid-message")).to_contain_text('"(" is not a regular expression. To search')
    one.go("pages?q=/maps/")
    one.expect_rows("Pages", MAPS)


def test_keys_open_the_details_of_a_page(visit: Opened, rich: Viewer) -> None:
    """Arrows choose a row, Enter opens it, Escape closes it and returns to the table. A link opens it again."""
    one = visit(rich, f"pages?section={HOST[8:]}/shop/globes")
    one.expect_rows("Pages", GLOBES)
    one.grid("Pages").focus()
    one.page.keyboard.press("End")
    one.page.keyboard.press("Home")
    one.page.keyboard.press("Enter")
    panel = one.page.get_by_role("complementary", name="Page details")
    expect(panel).to_contain_text("It turns")
    expect(panel.get_by_role("link", name=f"{HOST}/shop/globes/00.png")).to_have_attribute("rel", "noopener noreferrer")
    again = visit(rich, one.state)
    expect(again.page.get_by_role("complementary", name="Page details")).to_contain_text("It turns")
    one.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(one.grid("Pages")).to_be_focused()


def test_every_format_is_exported(visit: Opened, rich: Viewer) -> None:
    """The menu has every format of usp export, and each gives a file with the rows of the filter."""
    one = visit(rich, "pages?q=globes")
    one.expect_rows("Pages", GLOBES)
    names = [item["name"] for item in rich.ask("status")["formats"]]
    assert {"csv", "jsonl", "parquet"} <= set(names)
    for name in names:
        one.button("Export these rows ▾").click()
        with one.page.expect_download() as download:
            one.page.locator(".menu li a", has=one.page.locator(f"strong:text-is('{name}')")).click()
        path = download.value.path()
        assert path.stat().st_size > 0
        if name == "jsonl":
            assert len(path.read_text().splitlines()) == GLOBES


def test_all_rows_are_reached(visit: Opened, large: Viewer) -> None:
    """The table scrolls to any row, by the scroll bar and by keys."""
    one = visit(large, "pages")
    one.expect_rows("Pages", LARGE)
    grid = one.grid("Pages")
    grid.evaluate("node => { node.scrollTop = node.scrollHeight / 2; }")
    expect(one.row("Pages", LARGE // 2)).to_contain_text(f"/p/{LARGE // 2:06}")
    grid.focus()
    one.page.keyboard.press("End")
    expect(one.row("Pages", LARGE - 1)).to_contain_text(f"/p/{LARGE - 1:06}")
    assert grid.locator("[role=row]").count() < 100
    one.page.keyboard.press("Home")
    expect(one.row("Pages", 0)).to_contain_text("/p/000000")


def test_problems_show_the_rule_and_the_document(visit: Opened, rich: Viewer) -> None:
    """A code shows its rule and its places, and a place the lines of the document with the text marked."""
    one = visit(rich, "problems")
    one.link("L302").click()
    one.expect_rows("Problems", 1)
    expect(one.page.locator(".rule")).to_contain_text("not a date")
    one.row("Problems", 0).click()
    panel = one.page.get_by_role("complementary", name="Place of the problem")
    expect(panel.locator(".line.current mark")).to_have_text("08/05/2026")
    assert one.state == "problems?code=L302&row=0"
    one.link("show the pages with this problem").click()
    one.expect_rows("Pages", 1)
    one.page.go_back()
    expect(panel.locator(".line.current mark")).to_have_text("08/05/2026")


def test_a_problem_far_to_the_right_is_shown(visit: Opened, tmp_path: Path) -> None:
    """A document may be one line: what is shown of it has the place of the problem."""
    entries = "".join(f"<url><loc>{HOST}/{number}</loc></url>" for number in range(200))
    bad = f"<url><loc>{HOST}/bad</loc><lastmod>08/05/2026</lastmod></url>"
    (tmp_path / "line.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{entries}{bad}{entries}</urlset>")
    with ready(tmp_path / "home", tmp_path / "line.xml") as viewer:
        one = visit(viewer, "problems?code=L302&row=0")
        line = one.page.get_by_role("complementary", name="Place of the problem").locator(".line.current code")
        expect(line.locator("mark")).to_have_text("08/05/2026")
        expect(line.locator("mark")).to_be_in_viewport()
        expect(line.locator("em")).to_have_text(["… ", " … (cut)"])
        expect(one.page.locator(".line.current .line-number")).to_be_in_viewport()


def test_a_problem_in_view_does_not_scroll(visit: Opened, tmp_path: Path) -> None:
    """The start of the lines, with their numbers, stays where there is room for the place of the problem."""
    entry = f"<url><loc>{HOST}/bad</loc><lastmod>08/05/2026</lastmod></url>{' ' * 200}"
    (tmp_path / "line.xml").write_text(f"<urlset {SITEMAP_XMLNS}>\n{entry}</urlset>")
    with ready(tmp_path / "home", tmp_path / "line.xml") as viewer:
        one = visit(viewer, "problems?code=L302&row=0")
        lines = one.page.get_by_role("region", name="Lines of the document")
        expect(lines.locator("mark")).to_be_in_viewport()
        one.page.wait_for_timeout(300)
        assert lines.evaluate("one => one.scrollWidth > one.clientWidth && one.scrollLeft === 0")


def test_problems_of_a_sitemap(visit: Opened, rich: Viewer) -> None:
    """Problems are filtered by sitemap."""
    one = visit(rich, "problems")
    expect(one.link("N601")).to_be_visible()
    one.page.get_by_role("combobox", name="Sitemap").select_option(f"{HOST}/broken.xml")
    expect(one.link("N601")).to_have_count(0)
    expect(one.link("L302")).to_be_visible()
    assert one.state == f"problems?sitemap={HOST}/broken.xml"


def test_changes_of_runs(visit: Opened, crawled: Viewer) -> None:
    """The chart has a bar for each run; the list is that of the last two runs, or of any two."""
    one = visit(crawled, "changes")
    last, before = CHANGES[3], CHANGES[2]
    one.expect_rows("Changes", sum(last.values()))
    expect(one.page.locator(".runs a")).to_have_count(2)
    one.link(f"Removed {last['removed']}").click()
    one.expect_rows("Changes", last["removed"])
    one.page.locator(".runs a").first.click()
    one.expect_rows("Changes", sum(before.values()))
    one.row("Changes", 0).click()
    expect(one.page.get_by_role("complementary", name="Change details")).to_contain_text("/0")
    one.page.get_by_label("From run").select_option("1")
    one.page.get_by_label("to run").select_option("3")
    one.expect_rows("Changes", 8)
    one.page.go_back()
    expect(one.page.get_by_label("to run")).to_have_value("2")


def test_changes_are_exported(visit: Opened, crawled: Viewer) -> None:
    """A file has the rows that the list shows: of two runs, and of a kind."""
    one = visit(crawled, "changes?kind=removed")
    one.expect_rows("Changes", CHANGES[3]["removed"])
    one.button("Export these rows ▾").click()
    with one.page.expect_download() as download:
        one.page.locator(".menu li a", has=one.page.locator("strong:text-is('jsonl')")).click()
    assert download.value.suggested_filename == "changes.jsonl"
    rows = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert [row["change"] for row in rows] == ["removed"] * CHANGES[3]["removed"]


def test_without_runs_changes_say_what_to_do(visit: Opened, rich: Viewer) -> None:
    """Changes of a folder are not offered; a link to them says what is needed."""
    one = visit(rich, "changes")
    expect(one.page.locator(".notice")).to_contain_text("Run usp crawl twice")
    one.go("overview")
    expect(one.link("Pages")).to_be_visible()
    expect(one.link("Changes")).to_have_count(0)


def test_sql_runs_and_draws(visit: Opened, rich: Viewer) -> None:
    """An example runs at once; the result is a table or a chart; a wrong query gets a message."""
    one = visit(rich, "sql")
    one.button("Problems by code").click()
    expect(one.row("Result", 0)).to_contain_text("H632")
    one.page.get_by_label("Show as").select_option("bar chart")
    expect(one.page.locator(".chart .bar").first).to_be_visible()
    one.page.get_by_label("Query").fill("select nothing from pages")
    one.allowed.append("400")
    one.page.keyboard.press("Control+Enter")
    expect(one.page.locator(".summary.error")).to_contain_text("nothing")
    one.page.get_by_label("Query").fill("select url from pages where url like '%/00' order by 1")
    one.page.get_by_label("Show as").select_option("table")
    one.button("Run").click()
    one.expect_rows("Result", 2)
    assert "query=select+url+from+pages" in one.state


def test_a_link_does_not_run_a_query(visit: Opened, rich: Viewer) -> None:
    """A link fills the editor; only the reader runs it."""
    one = visit(rich, "sql?query=select+41%2B1+as+answer")
    expect(one.page.get_by_label("Query")).to_have_value("select 41+1 as answer")
    assert one.page.get_by_role("grid").count() == 0
    one.button("Run").click()
    expect(one.row("Result", 0)).to_have_text("42")


def test_examples_leave_an_editor_in_use_alone(visit: Opened, rich: Viewer) -> None:
    """Examples that arrive late do not get between the reader and the query."""
    one = visit(rich, "overview")
    held: list[Any] = []
    one.page.route("**/api/sql/examples", lambda route: held.append(route))
    one.go("sql")
    one.page.get_by_label("Query").focus()
    while not held:
        one.page.wait_for_timeout(10)
    held[0].continue_()
    expect(one.button("Problems by code")).to_be_visible()
    one.page.keyboard.type("select 41 + 1")
    expect(one.page.get_by_label("Query")).to_have_value("select 41 + 1")


def test_a_query_is_cancelled(visit: Opened, rich: Viewer) -> None:
    """A long query is cancelled by its button, which the keyboard reaches."""
    one = visit(rich, "sql")
    one.allowed.append("409")
    one.page.get_by_label("Query").fill("select count(*) from range(100000000000) where hash(range) = 1")
    one.button("Run").click()
    expect(one.button("Cancel")).to_be_focused()
    one.page.keyboard.press("Enter")
    expect(one.page.locator(".summary")).to_have_text("The query was cancelled.")
    expect(one.button("Run")).to_be_enabled()


@contextmanager
def served(explorer: Explorer) -> Iterator[Viewer]:
    """Serve an explorer of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    access = Access("127.0.0.1", listening.getsockname()[1])
    ended = Event()
    app = application(explorer, access, ended.is_set)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield Viewer(None, access.port, access.token)
    finally:
        ended.set()
        server.should_exit = True
        thread.join()


def test_a_query_that_takes_too_long_runs_once(visit: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so at once: no browser sends the query again."""
    (tmp_path / "sitemap.txt").write_text("https://www.example.org/\n")
    asked = []

    def ask(query: str, name: str) -> Any:
        asked.append(query)
        raise QueryTimeout("The query took longer than 30 seconds.")

    with explored(tmp_path) as explorer, served(explorer) as viewer:
        monkeypatch.setattr(explorer.store, "ask", ask)
        one = visit(viewer, "sql")
        one.allowed.append("504")
        one.page.get_by_label("Query").fill("select 1")
        one.button("Run").click()
        expect(one.page.locator(".summary")).to_have_text("The query took longer than 30 seconds.")
        one.page.goto("about:blank")
    assert asked == ["select 1"]


def test_attacks_stay_text(visit: Opened, rich: Viewer) -> None:
    """What a site writes is text everywhere, and never a link that runs a script."""
    one = visit(rich, "pages?q=hostile")
    states = ["overview", "sitemaps", "pages", "pages?q=<script>window.ran = 1</script>", "problems", "problems?row=0"]
    row = rich.ask("pages", sitemap=f"{HOST}/hostile.xml")["rows"][0]["row"]
    states += [f"pages?row={row}", f"pages?row={rich.ask('pages', has='news')['rows'][1]['row']}"]
    for state in states:
        one.go(state)
        expect(one.page.locator("main h1")).to_be_visible()
        one.page.wait_for_timeout(150)
        assert one.page.evaluate("() => window.ran") is None
        links = one.page.evaluate("() => [...document.links].map((one) => one.protocol)")
        assert set(links) == {"http:"} or set(links) == {"http:", "https:"}
    one.go(f"pages?row={row}")
    expect(one.page.get_by_role("complementary")).to_contain_text(ATTACKS[2])
    one.go(f"pages?row={row + 2}")
    path = RIGHT_TO_LEFT.replace("\u202e", "\ufffd")  # else it reads backwards
    expect(one.page.get_by_role("complementary").get_by_text(path, exact=True)).to_be_visible()
    one.go("sql")
    one.page.get_by_label("Query").fill("select url from pages where contains(sitemap_url, 'hostile')")
    one.button("Run").click()
    expect(one.grid("Result")).to_contain_text(path)
    assert one.page.evaluate("() => window.ran") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_are_accessible(visit: Opened, rich: Viewer, crawled: Viewer, scheme: str) -> None:
    """axe-core finds nothing serious in any view, in light and dark."""
    for viewer, states in (
        (rich, [*VIEWS[:4], "pages?q=globes&has=videos&row=30", "problems?code=L302&row=0", "sql", "sitemaps?row=7"]),
        (crawled, ["changes?row=0"]),
    ):
        one = visit(viewer)
        one.page.emulate_media(color_scheme=scheme)
        for state in states:
            one.go(state)
            expect(one.page.locator("main h1")).to_be_visible()
            one.page.wait_for_timeout(250)
            assert (state, one.violations()) == (state, [])


@pytest.mark.parametrize("state", [*VIEWS, "pages?row=3&q=maps&has=alternates", "problems?code=L302&row=0"])
def test_views_fit_a_telephone(visit: Opened, rich: Viewer, crawled: Viewer, state: str) -> None:
    """No view is wider than 360 pixels, and its title is there."""
    one = visit(crawled if state == "changes" else rich, state, width=360, height=740)
    expect(one.page.locator("main h1")).to_be_visible()
    one.page.wait_for_timeout(200)
    assert one.page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_the_theme_is_that_of_the_system(visit: Opened, rich: Viewer) -> None:
    """The page is dark where the system is."""
    one = visit(rich)
    colours = []
    for scheme in ("light", "dark"):
        one.page.emulate_media(color_scheme=scheme)
        colours.append(one.page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(246, 247, 249)", "rgb(20, 23, 28)"]


def test_the_skip_link_leads_to_the_content(visit: Opened, rich: Viewer) -> None:
    """The first stop of the Tab key leads to the content, and the state stays."""
    one = visit(rich, "pages?q=/maps/")
    one.expect_rows("Pages", MAPS)
    one.page.keyboard.press("Tab")
    one.page.keyboard.press("Enter")
    expect(one.page.locator("main h1")).to_be_focused()
    assert one.state == "pages?q=/maps/"


@pytest.mark.parametrize("name", VIEWS)
def test_the_demo_site(visit: Opened, demo: Viewer, name: str) -> None:
    """The demo site has every view."""
    expect(visit(demo, name).page.locator("main h1")).to_be_visible()


class _Slow(BaseHTTPRequestHandler):
    """A site whose second sitemap waits."""

    go: Event

    def do_GET(self) -> None:
        host = f"http://{self.headers['Host']}"
        bodies = {
            "/robots.txt": f"Sitemap: {host}/first.xml\nSitemap: {host}/second.xml\n".encode(),
            "/first.xml": urlset(f"<url><loc>{host}/one</loc></url>").encode(),
            "/second.xml": urlset(f"<url><loc>{host}/two</loc></url><url><loc>{host}/three</loc></url>").encode(),
        }
        if self.path == "/second.xml":
            self.go.wait(30)
        body = bodies.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def slow_site() -> Iterator[tuple[str, Event]]:
    go = Event()
    handler = type("Slow", (_Slow,), {"go": go})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", go
    finally:
        go.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_page_fills_while_sitemaps_arrive(visit: Opened, slow_site: tuple[str, Event], tmp_path: Path) -> None:
    """What has arrived is shown while the rest is fetched, and the rest appears by itself."""
    url, go = slow_site
    with viewing(url, TMPDIR=str(tmp_path)) as viewer:
        one = visit(viewer, "pages")
        one.expect_rows("Pages", 1)
        expect(one.page.locator("#progress")).to_contain_text("still reading")
        go.set()
        one.expect_rows("Pages", 3)
        expect(one.page.locator("#progress")).not_to_contain_text("reading")
        expect(one.page.locator("#progress")).to_contain_text("3 pages")


def test_a_server_that_ends_is_noticed(visit: Opened, tmp_path: Path) -> None:
    """When usp view ends, the page says so."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitemap.txt").write_text("https://www.example.org/\n")
    with ready(tmp_path / "temporary", tmp_path / "site") as viewer:
        one = visit(viewer, "pages")
        one.expect_rows("Pages", 1)
    one.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    expect(one.page.locator("#progress")).to_contain_text("check that usp view still runs")


def test_several_targets(visit: Opened, tmp_path: Path) -> None:
    """Several targets are one explorer, and a sitemap of one leads to its pages."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitemap.txt").write_text(f"https://{name}.example.org/\n")
    with ready(tmp_path / "temporary", tmp_path / "a", tmp_path / "b") as viewer:
        one = visit(viewer, "overview")
        expect(one.page.locator(".treemap a")).to_have_count(2)
        one.go("sitemaps?q=b.example")
        one.grid("Sitemaps").get_by_role("link").first.click()
        one.expect_rows("Pages", 1)
        expect(one.row("Pages", 0)).to_contain_text("https://b.example.org/")


def test_a_sitemap_without_pages_and_problems(visit: Opened, rich: Viewer) -> None:
    """Its details say that it has no pages, and nothing of problems."""
    one = visit(rich, "sitemaps?row=7")
    expect(one.page.locator(".panel .actions")).to_have_text("It has no pages.")


def test_figures_that_are_not_known_are_not_none(visit: Opened, rich: Viewer) -> None:
    """An overview that could not be counted does not say that there are no problems."""
    one = visit(rich, "overview?sitemap=99")
    one.allowed.append("404")
    expect(one.page.get_by_role("alert")).to_contain_text("no sitemap '99'")
    expect(one.page.locator(".tiles")).not_to_contain_text("none")
    expect(one.page.get_by_text("Counting…")).to_have_count(0)


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_the_names_below_a_chart_do_not_overlap(visit: Opened, rich: Viewer, width: int) -> None:
    """There is room between them, and they stay within the window."""
    page = visit(rich, width=width).page
    names = page.locator(".timeline .axis:last-of-type text")
    expect(names.first).to_be_visible()
    boxes = names.evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect()).map((one) => [one.left, one.right])"
    )
    edges = [edge for box in boxes for edge in box]
    assert len(boxes) > 1
    assert edges == sorted(edges)
    assert edges[0] >= 0
    assert edges[-1] <= width


def test_the_overview_names_odd_dates(visit: Opened, tmp_path: Path) -> None:
    """They are beside the timeline, with a link to their pages."""
    entries = "".join(
        f"<url><loc>{HOST}/{day}</loc><lastmod>{day}</lastmod></url>"
        for day in ("0001-01-01", "2024-05-08", "2024-06-01", "9999-12-31")
    )
    (tmp_path / "sitemap.xml").write_text(urlset(entries))
    with ready(tmp_path / "temporary", tmp_path / "sitemap.xml") as viewer:
        one = visit(viewer)
        expect(one.page.get_by_text("2024-05-08 to 2024-06-01: 2 pages")).to_be_visible()
        expect(one.page.get_by_text("1 page has a date before 1995: show 1 page")).to_be_visible()
        one.page.get_by_text("1 page has a date in the future").get_by_role("link").click()
        one.expect_rows("Pages", 1)
        expect(one.row("Pages", 0)).to_contain_text("9999-12-31")


@pytest.mark.parametrize("width", [360, 1280])
def test_names_in_the_treemap_are_whole(visit: Opened, tmp_path: Path, width: int) -> None:
    """A cell has the numbers that have room in it, and no part of others."""
    (tmp_path / "sitemap.txt").write_text(
        "".join(f"{HOST}/{'help' if number % 20 == 0 else 'shop'}/{number}\n" for number in range(2000))
    )
    with ready(tmp_path / "temporary", tmp_path / "sitemap.txt") as viewer:
        page = visit(viewer, width=width).page
        expect(page.locator(".treemap text", has_text="1,900 pages")).to_be_visible()
        room = page.locator(".treemap a text:not(.name)").evaluate_all(
            "all => all.map((one) => one.parentNode.width.baseVal.value - one.getBBox().x - one.getBBox().width)"
        )
    assert min(room) >= 0


def test_a_failed_target_says_why(visit: Opened, tmp_path: Path) -> None:
    """A site that does not answer gives a page that says so."""
    with viewing("http://127.0.0.1:9/", TMPDIR=str(tmp_path)) as viewer:
        while viewer.ask("status")["state"] in ("loading", "checking"):
            time.sleep(0.05)
        one = visit(viewer)
        expect(one.page.locator("#banner")).to_contain_text("does not answer")
        expect(one.page.get_by_text("There are no pages.")).to_be_visible()
        expect(one.link("See what each sitemap answered")).to_have_count(0)  # there is none


def test_a_site_without_pages_leads_to_its_sitemaps(visit: Opened, tmp_path: Path) -> None:
    """The overview has nothing to show, and says where there is more."""
    (tmp_path / "sitemap.xml").write_text(urlset())
    with ready(tmp_path / "temporary", tmp_path / "sitemap.xml") as viewer:
        one = visit(viewer)
        one.link("See what each sitemap answered").click()
        one.expect_rows("Sitemaps", 1)
