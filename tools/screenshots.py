"""Takes pictures of the explorer for the documentation, in docs/images/: light, dark and narrow, as WebP.

python tools/screenshots.py            of the demo site, and of a site of a million pages
python tools/screenshots.py 10000      of a smaller one, to try it

The million pages are written to a temporary folder as sitemaps of a shop with a blog. Dates count back from today, so
the pictures always show the same ages.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
HOST = "https://www.example.org"
_PER_SITEMAP = 50_000
_WIDE, _NARROW = (1280, 860), (360, 740)
#: Section of the site -> its share of the pages, and the age of its median page in days.
_SECTIONS = {
    "shop/maps": (0.30, 20),
    "shop/globes": (0.17, 300),
    "shop/atlases": (0.12, 90),
    "blog/travel": (0.14, 700),
    "blog/craft": (0.08, 1500),
    "news": (0.09, 9),
    "archive": (0.07, 2600),
    "help": (0.03, 0),
}


#: The view -> what it shows last.
_SHOWN = {
    "": ".treemap a rect",
    "pages": ".panel .fields",
    "problems": ".line.current",
    "sitemaps": ".grid-body .grid-row",
    "sql": ".chart .bar",
}


class Picture(NamedTuple):
    """A picture: its name, the target, the state of the page, the colours, the size, and what is clicked before."""

    name: str
    target: str
    state: str
    scheme: str = "light"
    size: tuple[int, int] = _WIDE
    click: str = ""


PICTURES = (
    Picture("overview-light", "large", ""),
    Picture("overview-dark", "large", "", "dark"),
    Picture("overview-narrow", "large", "", size=_NARROW),
    Picture("pages-dark", "large", "pages?section=www.example.org/blog&row=600000", "dark"),
    Picture(
        "sql-light", "large", "sql?as=chart&query=select section, count(*) as pages from pages group by 1", click="Run"
    ),
    Picture("demo-overview-light", "demo", ""),
    Picture("demo-problems-light", "demo", "problems?code=X102&row=0"),
    Picture("demo-sitemaps-narrow", "demo", "sitemaps", size=_NARROW),
)


def write_site(folder: Path, pages: int) -> None:
    """Write the sitemaps of a site with this number of pages."""
    chance, today = random.Random(1), datetime.now(UTC)  # noqa: S311 -- ages of example pages
    names: list[str] = []
    number = 0
    for section, (share, age) in _SECTIONS.items():
        left = round(pages * share)
        while left > 0:
            entries = []
            for _ in range(min(left, _PER_SITEMAP)):
                number += 1
                days = timedelta(days=min(chance.expovariate(0.69 / (age or 1)), 3650))
                date = f"<lastmod>{(today - days).date()}</lastmod>" if age else ""
                entries.append(f"<url><loc>{HOST}/{section}/{chance.choice('abcdefgh')}/{number}</loc>{date}</url>\n")
            names.append(f"sitemap-{section.replace('/', '-')}-{len(names)}.xml")
            text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{"".join(entries)}</urlset>\n'
            (folder / names[-1]).write_text(text)
            left -= len(entries)
    (folder / "robots.txt").write_text("".join(f"Sitemap: {HOST}/{name}\n" for name in names))


@contextmanager
def viewing(*arguments: str) -> Iterator[str]:
    """Run the explorer, wait until it is ready, and give its address."""
    command = [sys.executable, "-m", "usp", *arguments, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- our own command
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            base, token = address.split("/?token=")
            connection = http.client.HTTPConnection(base.removeprefix("http://"))
            state = ""
            while state in ("", "loading", "checking"):
                connection.request("GET", "/api/status", headers={"Authorization": f"Bearer {token}"})
                state = json.loads(connection.getresponse().read())["state"]
                time.sleep(0.2)
            connection.close()
            yield address
        finally:
            process.terminate()


def webp(browser: Any, png: bytes) -> bytes:
    """Return a picture as WebP, which the browser makes."""
    page = browser.new_page()
    url = page.evaluate(
        """async (data) => {
            const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.width, image.height];
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", 0.75);
        }""",
        base64.b64encode(png).decode(),
    )
    page.close()
    return base64.b64decode(url.partition(",")[2])


def taken(browser: Any, picture: Picture, address: str) -> bytes:
    """Take a picture."""
    width, height = picture.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=picture.scheme)
    page = context.new_page()
    page.goto(f"{address}#/{picture.state}")
    page.wait_for_selector("main h1")
    if picture.click:
        page.get_by_role("button", name=picture.click, exact=True).click()
    page.wait_for_selector(_SHOWN[picture.state.partition("?")[0]])
    page.wait_for_timeout(500)
    page.evaluate(f"document.getElementById('target').textContent = '{HOST}/'")
    return webp(browser, page.screenshot())


def main() -> None:
    """Take all pictures."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not installed; make screenshots installs it")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "www.example.org"
        folder.mkdir()
        write_site(folder, pages)
        addresses = {
            "large": stack.enter_context(viewing("view", str(folder))),
            "demo": stack.enter_context(viewing("demo", "--view")),
        }
        playwright = stack.enter_context(sync_playwright())
        for picture in PICTURES:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            path = IMAGES / f"view-{picture.name}.webp"
            path.write_bytes(taken(browser, picture, addresses[picture.target]))
            browser.close()
            print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
