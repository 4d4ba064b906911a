"""Who may see what `memboard open` serves: whoever has the URL that it printed.

Every user of a machine reaches its loopback addresses, so the URL carries a token. The
first page of a browser puts the token into a cookie that no script can read and no other
site's page can use, and goes on to the same address without it: it stays neither in the
address bar nor in a `Referer`.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from tb_plugin.errors import TokenError

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

WORD: Final = "token"
"""What the URL calls it."""

# A redirect would not do: after a link on another site's page browsers hold a strict
# cookie back until a page of ours is what leads on. The hash is the page's own state.
_GO_ON: Final = "location.replace(location.pathname + location.hash)"
_PAGE: Final = f"<!doctype html><title>MemBoard</title><script>{_GO_ON}</script>"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'sha256-"
    + b64encode(sha256(_GO_ON.encode()).digest()).decode()
    + "'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Access:
    """The token of one server. Safe for threads."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_urlsafe(32)
        self._for_once: list[str] = []

    def for_once(self) -> str:
        """Another token, which lets in one browser.

        It is for a command line, which all users of a machine can read.
        """
        token = secrets.token_urlsafe(32)
        self._for_once.append(token)
        return token

    def check(self, request: Request) -> Response | None:
        """None where the request may be answered; else what leads there.

        Raises:
            TokenError: it may not.
        """
        cookie = _cookie_of(request)
        known = any(map(self._is_token, request.cookies.getlist(cookie)))
        given = request.args.get(WORD)
        if given is None and known:
            return None
        # A token for once is spent even where it was not needed.
        if (given is not None and self._lets_in(given, request.method)) or known:
            response = Response(_PAGE, headers=_HEADERS, mimetype="text/html")
            response.set_cookie(cookie, self.token, httponly=True, samesite="Strict")
            return response
        raise TokenError(
            "This page is only for whoever started it.",
            request.host,
            "Open the whole URL that `memboard open` printed in its terminal, with its"
            " token. If it was started again since, take the new URL.",
        )

    def _is_token(self, text: str) -> bool:
        return _are_equal(text, self.token)

    def _lets_in(self, text: str, method: str) -> bool:
        if self._is_token(text):
            return True
        for token in tuple(self._for_once):
            if method == "GET" and _are_equal(text, token):
                try:
                    self._for_once.remove(token)
                except ValueError:  # another request was faster
                    return False
                return True
        return False


def _are_equal(one: str, other: str) -> bool:
    """Takes as long for any text, so that nobody finds a token letter by letter."""
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _cookie_of(request: Request) -> str:
    """Its name: cookies are one host's, whatever the port, and servers are told apart.

    The port that the browser sees is another one behind a tunnel.
    """
    port = request.environ["SERVER_PORT"]
    seen = request.headers.get("Host", "").rpartition(":")[2]
    return f"memboard-{port}" + (f"-{seen}" if seen.isdigit() and seen != port else "")
