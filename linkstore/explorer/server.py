"""The server of the page and of its JSON interface.

The page holds no secret. Its script has the token from the fragment of the address, which browsers do not
send, and sends it with every request for data. Who may send one, :mod:`linkstore.core.http_server` decides.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from linkstore.core.http_server import RequestGuard
from linkstore.errors import LinkStoreError, StoreBusyError, StoreUnavailableError
from linkstore.explorer.page import make_page, make_policy

if TYPE_CHECKING:
    from linkstore.agents.mcp_transport import Endpoint
    from linkstore.explorer.views import Views

MOST_BODY: Final = 1 << 20
"""How many bytes the body of a request may have."""
_SELF: Final = "'self'"
_LOG: Final = logging.getLogger("linkstore.explorer")
_PAGE_HEADERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(views: Views, token: str, hosts: frozenset[str], mcp: Endpoint | None = None) -> RequestGuard:
    """Return the server as an ASGI application.

    Args:
        views: What it shows.
        token: What requests for data must send as ``Authorization: Bearer TOKEN``.
        hosts: Values that ``Host`` may have, in lower case; an ``Origin`` must be one of them, too.
        mcp: Serves clients of the Model Context Protocol, at ``/mcp``; None: nobody does.
    """
    page = make_page({"mode": "server"}, views.name, connect=_SELF)
    policy = f"{make_policy(_SELF)}; frame-ancestors 'none'"
    headers = {**_PAGE_HEADERS, "Content-Security-Policy": policy}

    async def show_page(_: Request) -> Response:
        return HTMLResponse(page, headers=headers)

    async def show_view(request: Request) -> Response:
        try:
            arguments = orjson.loads(await _read_body(request) or b"{}")
        except ValueError:
            return _answer({"error": "the body is not JSON"}, 400)
        if not isinstance(arguments, dict):
            return _answer({"error": "the body is not a JSON object"}, 400)
        try:
            return _answer(await run_in_threadpool(views.show, request.path_params["name"], arguments))
        except (StoreBusyError, StoreUnavailableError) as error:
            return _answer({"error": str(error)}, 503)
        except LinkStoreError as error:
            return _answer({"error": str(error)}, 400)
        except Exception:  # noqa: BLE001 - the edge: whatever it is, the client gets an answer
            _LOG.exception("the view %s failed", request.path_params["name"])
            return _answer({"error": "the server failed; its log says why"}, 500)

    routes = [Route("/", show_page), Route("/api/{name}", show_view, methods=["POST"])]
    if mcp is not None:
        routes.append(Route("/mcp", mcp))
    app = Starlette(routes=routes, lifespan=mcp.lifespan if mcp is not None else None)
    return RequestGuard(app, token, hosts, public={"/"})


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
