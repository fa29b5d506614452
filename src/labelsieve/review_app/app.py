"""Routes of the review app, for one person on one machine.

Every address starts with a random token. Requests must name this machine as host and come from the page itself.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelsieve import __version__
from labelsieve._pages import content_policy, render
from labelsieve._text import printable
from labelsieve.inspection.label_issues import VERDICTS
from labelsieve.io import DatasetError
from labelsieve.review_app.session import OutOfDateError, Request, ReviewSession

_STYLES = ("common.css", "review/page.css")
_SCRIPTS = ("common.js", "review/parts.js", "review/page.js")
_MOST_BYTES = 100_000
_MOST_CARDS = 100
_VERDICTS = tuple(VERDICTS.values())
_HOSTS = ("127.0.0.1", "localhost")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY_OF_DATA = "default-src 'none'; frame-ancestors 'none'"


def build_app(session: ReviewSession, token: str) -> Starlette:
    """Return the app; its addresses start with ``/TOKEN/``."""

    def page(request: HttpRequest) -> Response:
        dataset = session.dataset
        own = "img-src 'self' data:; connect-src 'self'"
        policy = content_policy(_STYLES, _SCRIPTS, own)
        n_labels = sum(entry["n"] for entry in session.labels())
        html = render(
            "review.html",
            styles=_STYLES,
            scripts=_SCRIPTS,
            policy=policy,
            data={
                "labels": session.labels(),
                "file": printable(str(session.file)),
                "resumed": session.n_resumed,
            },
            title=dataset.name or "table",
            facts=[f"{dataset.X.shape[0]:,} rows", f"{n_labels:,} labels"],
            file=str(session.file.name),
            generator=f"labelsieve {__version__}",
        )
        headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
        return HTMLResponse(html, headers=headers)

    def version(request: HttpRequest) -> Response:
        return JSONResponse({"version": session.version})

    def image(request: HttpRequest) -> Response:
        found = session.image(request.path_params["row"], request.path_params["column"])
        if found is None:
            raise HTTPException(404)
        path, kind = found
        try:
            return Response(path.read_bytes(), media_type=kind)
        except OSError:
            raise HTTPException(404) from None

    def view(body: dict[str, Any]) -> dict[str, Any]:
        return session.view(_page_of(body))

    def verdict(body: dict[str, Any]) -> dict[str, Any]:
        cards = body.get("cards")
        if (
            not isinstance(cards, list)
            or not 0 < len(cards) <= _MOST_CARDS
            or not all(isinstance(card, list) and list(map(type, card)) == [str, str] for card in cards)
        ):
            raise ValueError("cards must be a list of keys with the verdicts that the page shows")
        if any(word not in _VERDICTS for word in (body.get("verdict"), *(seen for _, seen in cards))):
            raise ValueError("verdicts must be right, wrong, unsure or empty")
        session.judge([tuple(card) for card in cards], body["verdict"])
        return session.view(_page_of(body))

    def undo(body: dict[str, Any]) -> dict[str, Any]:
        key = session.undo(_number(body, "last"))
        found = session.view(_page_of(body))
        if found["grid"] is None:  # show the card again
            found["card"] = session.view(_page_of({**body, "card": key}))["card"]
        return found

    def draw(body: dict[str, Any]) -> dict[str, Any]:
        session.draw_next()
        return session.view(_page_of(body))

    def preview(body: dict[str, Any]) -> dict[str, Any]:
        return {"removals": session.removals()}

    def write(body: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(body.get("removals"), bool):
            raise ValueError("removals must be true or false")
        session.write(with_removals=body["removals"])
        return session.view(_page_of(body))

    actions = (view, verdict, undo, draw, preview, write)
    app = Starlette(
        routes=[
            Route("/", page),
            Route("/version", version),
            Route("/image/{row:int}/{column:int}", image),
            *(Route(f"/{action.__name__}", _action(action), methods=["POST"]) for action in actions),
        ],
        exception_handlers={Exception: lambda request, error: _error(500, f"Unexpected error: {error!r}")},
    )
    app.add_middleware(_Guard, token=token)
    return app


class _Guard:
    """Middleware that rejects requests from elsewhere, removes the token from the path, and adds headers."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**_HEADERS, "Content-Security-Policy": _POLICY_OF_DATA}.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        problem = _problem(headers)
        _, token, path = (*scope["path"].split("/", 2), "", "")[:3]
        if problem is not None:
            response = Response(problem, 403)
        elif not secrets.compare_digest(token.encode(), self._token.encode()):
            response = Response("Use the complete address that labelsieve review printed.", 404)
        elif scope["path"] == f"/{token}":
            response = Response(status_code=307, headers={"Location": f"/{token}/"})
        else:
            # `root_path` stays empty, so that routes see the rest of the path only.
            scope = {**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}
            await self._app(scope, receive, send_with_headers)
            return
        await response(scope, receive, send_with_headers)


def _problem(headers: Headers) -> str | None:
    """Return why a request does not come from the page itself, or None."""
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name not in _HOSTS:
        return "Open the address that labelsieve review printed."
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "Requests from other pages are not allowed."
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "Requests from other pages are not allowed."
    return None


def _action(action: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return an endpoint that calls an action with the JSON body in a thread, and answers with JSON."""

    async def endpoint(request: HttpRequest) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            return _error(415, "Send JSON.")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return _error(413, f"Send at most {_MOST_BYTES:,} bytes.")
        try:
            values = json.loads(body)
        except (ValueError, RecursionError):
            return _error(400, "Send valid JSON.")
        if not isinstance(values, dict):
            return _error(400, "Send a JSON object.")
        try:
            return JSONResponse(await run_in_threadpool(action, values))
        except OutOfDateError:
            return _error(409, "The review changed in another tab or window. This page is up to date again.")
        except ValueError as error:
            status = 500 if isinstance(error, DatasetError) else 400
            return _error(status, printable(str(error)))
        except OSError as error:
            return _error(500, printable(str(error)))

    return endpoint


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)


def _number(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{name} must be a number")
    return value


def _page_of(body: dict[str, Any]) -> Request:
    """Return what the page shows, from the body of a request."""

    def keys(name: str) -> tuple[str, ...]:
        found = body.get(name, [])
        if not isinstance(found, list) or not all(isinstance(key, str) for key in found):
            raise ValueError(f"{name} must be a list of keys")
        return tuple(found)

    queue, card = body.get("queue", "draw"), body.get("card")
    if not isinstance(queue, str) or not (card is None or isinstance(card, str)):
        raise ValueError("queue and card must be texts")
    grid = None if body.get("grid") is None else keys("grid")
    return Request(queue, _number({"label": 0, **body}, "label"), keys("skipped"), card, grid)
