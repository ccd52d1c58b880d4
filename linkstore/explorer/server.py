"""The server of the page and of its JSON interface. Needs the extra ``serve``.

The page holds no secret. Its script has the token from the fragment of the address, which browsers do not
send, and sends it with every request for data. A page of another site can send requests to servers on
loopback, under any host name that its owner makes lead there (DNS rebinding). So ``Host`` and ``Origin`` must
have exactly the names that are allowed.
"""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import orjson

from linkstore.errors import LinkStoreError, MissingExtraError, StoreBusyError, StoreUnavailableError

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtraError("linkstore serve", "serve") from error

from linkstore.explorer.page import make_page, make_policy
from linkstore.explorer.views import Views

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
MOST_BODY: Final = 1 << 20
"""How many bytes the body of a request may have."""
_SELF: Final = "'self'"
_LOG: Final = logging.getLogger("linkstore.explorer")
_PAGE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(views: Views, token: str, hosts: frozenset[str]) -> App:
    """Return the server as an ASGI application.

    Args:
        views: What it shows.
        token: What requests for data must send as ``Authorization: Bearer TOKEN``.
        hosts: Values that ``Host`` may have, in lower case; an ``Origin`` must be one of them, too.
    """
    page = make_page({"mode": "server"}, views.name, connect=_SELF)
    policy = f"{make_policy(_SELF)}; frame-ancestors 'none'"
    headers = {**_PAGE_HEADERS, "Content-Security-Policy": policy}

    async def show_page(_: Request) -> Response:
        return HTMLResponse(page, headers=headers)

    async def show_view(request: Request) -> Response:
        try:
            given = orjson.loads(await _read_body(request) or b"{}")
        except ValueError:
            return _answer({"error": "the body is not JSON"}, 400)
        if not isinstance(given, dict):
            return _answer({"error": "the body is not a JSON object"}, 400)
        try:
            return _answer(await run_in_threadpool(views.show, request.path_params["name"], given))
        except (StoreBusyError, StoreUnavailableError) as error:
            return _answer({"error": str(error)}, 503)
        except LinkStoreError as error:
            return _answer({"error": str(error)}, 400)
        except Exception:  # noqa: BLE001 - the edge: whatever it is, the client gets an answer
            _LOG.exception("the view %s failed", request.path_params["name"])
            return _answer({"error": "the server failed; its log says why"}, 500)

    routes = [Route("/", show_page), Route("/api/{name}", show_view, methods=["POST"])]
    return Guard(Starlette(routes=routes), token, hosts)


def run_server(app: App, listening: socket.socket) -> None:
    """Serve an application on a socket that listens, until interrupted."""
    config = uvicorn.Config(
        app,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])


async def _read_body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        ValueError: If it is too large.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise ValueError("the body is too large")
    return bytes(body)


def _answer(value: Any, status: int = 200) -> Response:
    body = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, _PAGE_HEADERS, "application/json")


class Guard:
    """Passes requests on that have the right host, origin and, for data, token.

    Args:
        app: Answers them.
        token: What requests for data must send.
        hosts: Values that ``Host`` may have, in lower case.
    """

    def __init__(self, app: App, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {host.encode() for host in hosts}
        self._origins = {b"http://" + host for host in self._hosts} | {
            b"https://" + host for host in self._hosts
        }

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request by the interface of ASGI."""
        if scope["type"] == "http":
            refused = self._refuse(scope)
            if refused is not None:
                await refused(scope, receive, send)
                return
        elif scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _refuse(self, scope: Message) -> Response | None:
        """Return the answer to a request that may not be made, or None."""
        sent: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name, []).append(value)
        if len(sent.get(b"host", [])) != 1 or sent[b"host"][0].lower() not in self._hosts:
            return _answer({"error": "this server does not answer to that host"}, 421)
        origins = sent.get(b"origin", [])
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return _answer({"error": "pages of this origin may not use the server"}, 403)
        if scope["path"].startswith("/api/"):
            given = sent.get(b"authorization", [])
            scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(token, self._token):
                return _answer({"error": "the token is missing or wrong"}, 401)
        return None
