"""Who a request of the review page comes from: a cookie with a CSRF header, or a bearer token.

The personal link carries the token in its fragment, which a browser never sends. The page exchanges it for a cookie
that scripts cannot read (HttpOnly) and that no other site can make the browser send (SameSite=Strict). Requests that
change something also need a header that follows from the token, so that a cookie alone is never enough.
"""

import hashlib
import hmac
import time
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from maskwise.review.queue import Reviewer
from maskwise.review.review import Review
from maskwise.server.responses import RequestRejectedError

CSRF_HEADER = "X-CSRF-Token"
COOKIE_SECONDS = 60 * 60 * 24 * 30
"""A month: reviewers come back for weeks."""

COOKIE_PATH = "/review"
KNOWN_SECONDS = 2.0
"""How long a token is believed without asking the database again."""

MAX_TOKEN = 200
"""Characters; ours have 43."""

Connection = ASGIConnection[Any, Any, Any, Any]


class ReviewAccess:
    """Recognizes the reviewers of one review."""

    def __init__(self, review: Review) -> None:
        self.review = review
        # Cookies do not distinguish ports, so that two reviews on one machine need different names.
        self.cookie = f"maskwise_review_{review.facts().hash[:8]}"
        self._known: dict[str, tuple[Reviewer, float]] = {}

    def token_of(self, request: Connection) -> str:
        """The token of a request that may come from here: 401 without one, 403 without the header against CSRF."""
        # A program sends the token itself; no browser adds this header, so that it needs no other.
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return bearer.strip()
        token = request.cookies.get(self.cookie)
        if token is None:
            raise _unknown()
        method = request.scope.get("method", "GET")
        if method not in ("GET", "HEAD"):
            given = request.headers.get(CSRF_HEADER, "")
            if not hmac.compare_digest(given.encode(), csrf_of(token).encode()):
                raise RequestRejectedError(
                    403, f"expected the header {CSRF_HEADER} of this session"
                )
        return token

    def find(self, token: str) -> Reviewer:
        """The reviewer with a token; reads the database."""
        if len(token) > MAX_TOKEN:
            raise _unknown()
        known, until = self._known.get(token, (None, 0.0))
        if known is not None and time.monotonic() < until:
            return known
        reviewer = self.review.find_reviewer(token)
        if reviewer is None:
            self._known.pop(token, None)
            raise _unknown()
        self._known[token] = (reviewer, time.monotonic() + KNOWN_SECONDS)
        return reviewer

    def make_cookie(self, token: str, *, secure: bool) -> Cookie:
        """The cookie that keeps a token in the browser. secure: only sent over TLS."""
        return Cookie(
            key=self.cookie,
            value=token,
            max_age=COOKIE_SECONDS,
            path=COOKIE_PATH,
            secure=secure,
            httponly=True,
            samesite="strict",
        )

    def make_expired_cookie(self) -> Cookie:
        """The cookie that removes the one before."""
        return Cookie(
            key=self.cookie,
            value="",
            max_age=0,
            path=COOKIE_PATH,
            httponly=True,
            samesite="strict",
        )


def check_token(connection: Connection, _route: object) -> None:
    """Guard of a route: rejects a request without a token before its body is read; `find` looks the token up."""
    connection.app.state.access.token_of(connection)


def csrf_of(token: str) -> str:
    """The value of the header against CSRF that belongs to a token."""
    return hmac.new(
        token.encode(errors="replace"), b"csrf", hashlib.sha256
    ).hexdigest()[:32]


def _unknown() -> RequestRejectedError:
    return RequestRejectedError(
        401, "no valid token: open your personal link", {"WWW-Authenticate": "Bearer"}
    )
