"""Who a request of the review page comes from: a cookie with a CSRF header, or a bearer token.

The personal link carries the token in its fragment, which a browser never sends. The page exchanges it for a cookie
that scripts cannot read (HttpOnly) and that no other site can make the browser send (SameSite=Strict). Requests that
change something also need a header that follows from the token, so that a cookie alone is never enough.
"""

import hashlib
import hmac
import time

from fastapi import Request, Response

from maskwise.review.queue import Reviewer
from maskwise.review.review import Review
from maskwise.server.responses import RequestRejectedError

CSRF_HEADER = "X-CSRF-Token"
COOKIE_SECONDS = 60 * 60 * 24 * 30
COOKIE_PATH = "/review"
KNOWN_SECONDS = 2.0
"""How long a token is believed without asking the database again."""

MAX_TOKEN = 200


class ReviewAccess:
    """Recognizes the reviewers of one review."""

    def __init__(self, review: Review) -> None:
        self.review = review
        # Cookies do not distinguish ports, so that two reviews on one machine need different names.
        self.cookie = f"maskwise_review_{review.facts().hash[:8]}"
        self._known: dict[str, tuple[Reviewer, float]] = {}

    def token_of(self, request: Request) -> str:
        """The token of a request that may come from here: 401 without one, 403 without the header against CSRF."""
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return bearer.strip()
        token = request.cookies.get(self.cookie)
        if token is None:
            raise _unknown()
        if request.method not in ("GET", "HEAD"):
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
        found = self.review.find_reviewer(token)
        if found is None:
            self._known.pop(token, None)
            raise _unknown()
        self._known[token] = (found, time.monotonic() + KNOWN_SECONDS)
        return found

    def set_cookie(self, request: Request, response: Response, token: str) -> None:
        """Keep the token in the browser."""
        response.set_cookie(
            self.cookie,
            token,
            max_age=COOKIE_SECONDS,
            path=COOKIE_PATH,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def remove_cookie(self, response: Response) -> None:
        """Forget the token."""
        response.delete_cookie(
            self.cookie, path=COOKIE_PATH, httponly=True, samesite="strict"
        )


def csrf_of(token: str) -> str:
    """The value of the header against CSRF that belongs to a token."""
    return hmac.new(
        token.encode(errors="replace"), b"csrf", hashlib.sha256
    ).hexdigest()[:32]


def _unknown() -> RequestRejectedError:
    return RequestRejectedError(
        401, "no valid token: open your personal link", {"WWW-Authenticate": "Bearer"}
    )
