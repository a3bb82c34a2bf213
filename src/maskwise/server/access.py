"""Tokens: who may read, and who may write.

| server | reading | writing (uploads, questions from the page) |
|---|---|---|
| with a token | `Authorization: Bearer TOKEN` | the same |
| for this machine alone, without a token | open | `Authorization: Bearer` with the token of `GET /v1/session` |

The second token is made when the server starts. A page of another site cannot read it, because responses allow no other
origin and requests that name another host are refused. No cookie is used, so a browser never sends a token by itself.

`check_read` and `check_write` are guards: the framework calls them before it reads the body of a request.
"""

import hmac
import secrets
from typing import Any

from litestar import Request, Router, get
from litestar.connection import ASGIConnection

from maskwise.server.responses import RequestRejectedError, errors

WRITE_TOKEN_BYTES = 24
"""192 random bits: nobody guesses them."""

Connection = ASGIConnection[Any, Any, Any, Any]


class AccessTokens:
    """token: required from every request, None for a server that only this machine can reach."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.write_token = token or secrets.token_urlsafe(WRITE_TOKEN_BYTES)

    def may_read(self, connection: Connection) -> bool:
        """Whether a request carries the token, where one is set."""
        return self.token is None or _has_token(connection, self.token)

    def may_write(self, connection: Connection) -> bool:
        """Whether a request carries the token for writing."""
        return _has_token(connection, self.write_token)


def check_read(connection: Connection, _route: object) -> None:
    """Guard of a route that shows something: 401 without the token, where one is set."""
    if not connection.app.state.access.may_read(connection):
        raise _missing_token()


def check_write(connection: Connection, _route: object) -> None:
    """Guard of a route that changes something: 401 without the token for writing."""
    if not connection.app.state.access.may_write(connection):
        raise _missing_token()


def bearer_token(connection: Connection) -> str | None:
    """The token that a request carries."""
    kind, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else None


@get("/v1/session", guards=[check_read], sync_to_thread=False, responses=errors(401))
def session(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The token for writing. With a token set, only for those who send it."""
    return {"token": request.app.state.access.write_token}


def session_router() -> Router:
    """`GET /v1/session`: the token for writing, for the pages of this server."""
    return Router("/", route_handlers=[session])


def _has_token(connection: Connection, token: str) -> bool:
    given = bearer_token(connection)
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def _missing_token() -> RequestRejectedError:
    message = "expected the header Authorization: Bearer TOKEN"
    return RequestRejectedError(401, message, {"WWW-Authenticate": "Bearer"})
