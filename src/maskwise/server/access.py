"""Tokens: who may read, and who may write.

| server | reading | writing (uploads, questions from the page) |
|---|---|---|
| with a token | `Authorization: Bearer TOKEN` | the same |
| for this machine alone, without a token | open | `Authorization: Bearer` with the token of `GET /v1/session` |

The second token is made when the server starts. A page of another site cannot read it, because responses allow no other
origin and requests that name another host are refused. No cookie is used, so a browser never sends a token by itself.
"""

import hmac
import secrets

from fastapi import APIRouter, Request, Response

from maskwise.server.responses import RequestRejectedError, json_response


class AccessTokens:
    """token: required from every request, None for a server that only this machine can reach."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.write_token = token or secrets.token_urlsafe(24)

    def check_read(self, request: Request) -> None:
        """Reject a request without the token, where one is set."""
        if self.token is not None:
            _check(request, self.token)

    def check_write(self, request: Request) -> None:
        """Reject a request without the token for writing."""
        _check(request, self.write_token)


def bearer_token(request: Request) -> str | None:
    """The token that a request carries."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else None


def session_router(access: AccessTokens) -> APIRouter:
    """`GET /v1/session`: the token for writing, for the pages of this server."""
    router = APIRouter()

    @router.get("/v1/session")
    async def session(request: Request) -> Response:
        """The token for writing. With a token set, only for those who send it."""
        access.check_read(request)
        return json_response({"token": access.write_token})

    return router


def _check(request: Request, token: str) -> None:
    given = bearer_token(request)
    if given is None or not hmac.compare_digest(given.encode(), token.encode()):
        message = "expected the header Authorization: Bearer TOKEN"
        raise RequestRejectedError(401, message, {"WWW-Authenticate": "Bearer"})
