"""The web server of the explorer: who may ask, and how answers are written. What they say is in `explorer`.

- It listens on 127.0.0.1 unless told otherwise.
- A random token is in the first URL. It is exchanged for a cookie; programs send it as `Authorization: Bearer`.
- The `Host` header must be that of the server, so a web page elsewhere cannot reach it by a name of its own that leads
  to 127.0.0.1 (DNS rebinding). POST needs a header that no form can send.
- The page loads nothing from elsewhere (Content-Security-Policy).
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import json
import os
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.extras import extra
from usp.view.explorer import Explorer, NotFound, json_numbers, json_value
from usp.view.queries import QueryCancelled, QueryTimeout

__all__ = ["Access", "application", "serve"]

_COOKIE = "usp_view"
_HEADERS = (
    ("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
#: A query that is nested deeper than this allows would end the process: DuckDB's parser runs out of stack.
_MAX_BODY = 1 << 17
_EVENT_SECONDS = 0.5
#: A query that took too long is no 408: after that, browsers send the request again.
_STATUSES = {NotFound: 404, QueryTimeout: 504, QueryCancelled: 409, InvalidArgumentError: 400}
_REFUSED = "Open the address that usp view has printed: it has the token that this page needs.\n"
_WRONG_HOST = "This server does not answer to that name.\n"
_API = "/api/"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Access:
    """Who may use the server: requests to one of its names, with the token.

    :param host: the address that it listens on.
    """

    def __init__(self, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self._is_any = host in ("0.0.0.0", "::", "")  # noqa: S104 -- what the user asked for
        self._names = {"localhost", "127.0.0.1", "::1", host.lower()}
        if self._is_any:
            self._names.add(socket.gethostname().lower())
        self._shown = "127.0.0.1" if self._is_any else f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        """The URL to open, with the token."""
        return f"http://{self._shown}:{self.port}/?token={self.token}"

    def is_host(self, header: str) -> bool:
        """Return whether a `Host` header names this server."""
        name, _, port = header.rpartition(":") if not header.endswith("]") else (header, "", "")
        if not name:
            name, port = header, "80"
        name = name.strip("[]").lower()
        if port != str(self.port):
            return False
        return name in self._names or (self._is_any and _is_address(name))

    def has_token(self, cookies: str, authorization: str) -> bool:
        """Return whether a request has the token, as a cookie or in a header."""
        given = [authorization.removeprefix("Bearer ")] if authorization.startswith("Bearer ") else []
        for cookie in cookies.split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == self.cookie_name:
                given.append(value)
        return any(self.is_token(text) for text in given)

    def is_token(self, text: str) -> bool:
        """Return whether a text is the token."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    @property
    def cookie_name(self) -> str:
        """The name of the cookie. Cookies do not depend on the port, so several servers need several names."""
        return f"{_COOKIE}_{self.port}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Guard:
    """Answers requests that may not pass, and adds the headers to all answers."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in _HEADERS]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        response = self._refusal(scope)
        await (self._app if response is None else response)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Any:
        """Return the answer to a request that may not pass; None if it may."""
        requests, responses = extra("starlette.requests", "view"), extra("starlette.responses", "view")
        request = requests.Request(scope)
        headers = request.headers
        if not self._access.is_host(headers.get("host", "")):
            return _error(request, _WRONG_HOST, 421)
        if request.method == "POST" and headers.get("x-usp") != "1":
            return _error(request, "Send the header X-Usp: 1.\n", 403)
        token = request.query_params.get("token")
        if token is not None and request.method == "GET" and scope["path"] == "/" and self._access.is_token(token):
            answer = responses.RedirectResponse("/", 303)
            answer.set_cookie(self._access.cookie_name, self._access.token, httponly=True, samesite="lax", path="/")
            return answer
        if not self._access.has_token(headers.get("cookie", ""), headers.get("authorization", "")):
            return _error(request, _REFUSED, 403)
        return None


def _error(request: Any, text: str, status: int) -> Any:
    """Return an error: JSON for the API, else a sentence for people."""
    if request.url.path.startswith(_API):
        return _json({"error": text.strip()}, status)
    return extra("starlette.responses", "view").PlainTextResponse(text, status)


async def _failed(request: Any, error: Any) -> Any:
    """Answer a request that no endpoint takes, or that found a bug."""
    return _error(
        request,
        f"{getattr(error, 'detail', 'Internal error; the terminal of usp view shows it')}\n",
        getattr(error, "status_code", 500),
    )


def application(explorer: Explorer, access: Access, is_ending: Callable[[], bool] = lambda: False) -> Any:
    """Return the ASGI application.

    :param is_ending: says whether the server ends; then open streams of events end, too.
    """
    applications, routing = extra("starlette.applications", "view"), extra("starlette.routing", "view")
    staticfiles, responses = extra("starlette.staticfiles", "view"), extra("starlette.responses", "view")
    static = str(files("usp.view").joinpath("static"))

    async def index(request: Any) -> Any:
        return responses.FileResponse(os.path.join(static, "index.html"))

    routes = [
        routing.Route("/", index),
        routing.Route("/api/events", partial(_events, explorer, is_ending)),
        routing.Route("/api/export", partial(_export, explorer.export, "pages")),
        routing.Route("/api/changes/export", partial(_export, explorer.export_changes, "changes")),
        *(routing.Route(f"/api/{name}", _asked(ask)) for name, ask in _questions(explorer).items()),
        routing.Route("/api/sql", _posted(partial(_sql, explorer)), methods=["POST"]),
        routing.Route("/api/sql/cancel", _posted(partial(_cancel, explorer)), methods=["POST"]),
        routing.Mount("/static", staticfiles.StaticFiles(directory=static)),
    ]
    handlers = {extra("starlette.exceptions", "view").HTTPException: _failed, Exception: _failed}
    return _Guard(applications.Starlette(routes=routes, exception_handlers=handlers), access)


def _questions(explorer: Explorer) -> dict[str, Callable[[dict[str, str], dict[str, str]], Any]]:
    """Return the paths below /api/ that are read, and what answers them: of the query, and of parts of the path."""
    return {
        "status": lambda query, path: explorer.status(),
        "overview": lambda query, path: explorer.overview(query),
        "sitemaps": lambda query, path: explorer.sitemaps(query),
        "pages": lambda query, path: explorer.pages(query),
        "page": lambda query, path: explorer.page(query),
        "problems": lambda query, path: explorer.problems(query),
        "problems/list": lambda query, path: explorer.problem_list(query),
        "rules/{code}": lambda query, path: explorer.rule(path["code"]),
        "document": lambda query, path: explorer.document(query),
        "runs": lambda query, path: explorer.runs(),
        "changes": lambda query, path: explorer.changes(query),
        "sql/examples": lambda query, path: explorer.tables(),
    }


def _sql(explorer: Explorer, body: Any) -> dict[str, Any]:
    return explorer.sql(_text(body, "query"), _text(body, "id"))


def _cancel(explorer: Explorer, body: Any) -> dict[str, Any]:
    explorer.store.cancel(_text(body, "id"))
    return {}


def _text(body: Any, name: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str):
        raise InvalidArgumentError(f'send a JSON object with the text "{name}"')
    return value.encode("utf-8", "replace").decode()  # JSON may have half a character


def _json(value: Any, status: int = 200) -> Any:
    responses = extra("starlette.responses", "view")
    return responses.Response(_encoded(value).encode("utf-8", "replace"), status, media_type="application/json")


def _encoded(value: Any) -> str:
    write = partial(json.dumps, default=json_value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return write(value)
    except ValueError:  # JSON has no infinite numbers
        return write(json_numbers(value))


async def _answered(ask: Callable[[], Any]) -> Any:
    """Run a question in a thread, and return the response: JSON, or an error that says what to do."""
    run = extra("starlette.concurrency", "view").run_in_threadpool
    try:
        return _json(await run(ask))
    except tuple(_STATUSES) as error:
        return _error_json(error)


def _error_json(error: Exception) -> Any:
    return _json({"error": str(error)}, next(code for kind, code in _STATUSES.items() if isinstance(error, kind)))


def _asked(ask: Callable[[dict[str, str], dict[str, str]], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def endpoint(request: Any) -> Any:
        return await _answered(partial(ask, dict(request.query_params), dict(request.path_params)))

    return endpoint


def _posted(ask: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def endpoint(request: Any) -> Any:
        data = b""
        async for piece in request.stream():
            data += piece
            if len(data) > _MAX_BODY:
                return _json({"error": "the request is too large"}, 413)
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            return _json({"error": "send JSON"}, 400)
        return await _answered(partial(ask, body))

    return endpoint


async def _events(explorer: Explorer, is_ending: Callable[[], bool], request: Any) -> Any:
    async def events() -> AsyncIterator[str]:
        last = ""
        while not is_ending():
            status = explorer.status()
            text = json.dumps(status, default=json_value, ensure_ascii=False)
            if text != last:
                last = text
                yield f"data: {text}\n\n"
            await asyncio.sleep(_EVENT_SECONDS)

    return extra("starlette.responses", "view").StreamingResponse(events(), media_type="text/event-stream")


async def _export(write: Callable[[dict[str, str]], str], name: str, request: Any) -> Any:
    responses, background = extra("starlette.responses", "view"), extra("starlette.background", "view")
    run = extra("starlette.concurrency", "view").run_in_threadpool
    try:
        path = await run(write, dict(request.query_params))
    except tuple(_STATUSES) as error:
        return _error_json(error)
    filename = f"{name}{os.path.splitext(path)[1]}"
    return responses.FileResponse(path, filename=filename, background=background.BackgroundTask(os.unlink, path))


def serve(explorer: Explorer, host: str, port: int, on_start: Callable[[Access], None]) -> None:
    """Serve until Ctrl-C or SIGTERM.

    :param port: 0 for any free one.
    :param on_start: called once the server listens.
    :raises OSError: if the port cannot be used.
    """
    uvicorn = extra("uvicorn", "view")
    listening = _listening(host, port)
    access = Access(host, listening.getsockname()[1])
    server: Any = None
    app = application(explorer, access, lambda: server is not None and server.should_exit)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=2, lifespan="off", server_header=False
    )
    server = uvicorn.Server(config)
    shut_down = server.shutdown

    async def end_queries_first(*arguments: Any, **options: Any) -> None:
        await asyncio.to_thread(explorer.store.end_queries)  # else the server would wait for them
        await shut_down(*arguments, **options)

    server.shutdown = end_queries_first
    explorer.start()
    on_start(access)
    with listening, _hanging_up(server.handle_exit):
        server.run([listening])


@contextmanager
def _hanging_up(handle: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle a terminal that is closed, which uvicorn does not, unless nohup ignores it."""
    number = getattr(signal, "SIGHUP", None)  # not on Windows
    before = None if number is None else signal.getsignal(number)
    if number is None or before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        where = f"{host}, port {port}" if port else host
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise OSError(f"cannot serve on {where}: {error.strerror}; choose another with {option}") from error
    return found
