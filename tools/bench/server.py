"""Serves a site of gzipped sitemaps on loopback, from a process of its own.

`server.py FOLDER [PORT]` prints its homepage. It ends when its standard input does, so that it never outlives whoever
started it.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

INDEX_TAG = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    """What answers requests: a robots.txt, one index, and the files of a folder."""
    names = sorted(path.name for path in folder.iterdir())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one go

        def do_GET(self) -> None:
            name = self.path.removeprefix("/")
            base = f"http://127.0.0.1:{self.connection.getsockname()[1]}/"
            if name == "robots.txt":
                self.answer(200, f"User-agent: *\nSitemap: {base}index.xml\n".encode(), "text/plain")
            elif name == "index.xml":
                entries = "".join(f"<sitemap><loc>{base}{name}</loc></sitemap>\n" for name in names)
                self.answer(200, f"{INDEX_TAG}\n{entries}</sitemapindex>\n".encode(), "application/xml")
            elif name in names:
                self.answer(200, (folder / name).read_bytes(), "application/gzip")
            else:
                self.answer(404, b"not here", "text/plain")

        def answer(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def main() -> None:
    """Serve until standard input ends."""
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with ThreadingHTTPServer(("127.0.0.1", port), handler(Path(sys.argv[1]))) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
