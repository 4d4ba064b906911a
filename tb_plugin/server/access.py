"""Access: the host names a server answers to, and the token of `memboard open`.

A site may let its own name lead to this machine (DNS rebinding). A browser then takes our
answers for the site's own and lets its page read them. The `Host` that the browser sends
is what shows it: no page can change that header. A page can write `X-Forwarded-Host` and
its like, so they count for nothing.

Every user of a machine reaches its loopback addresses, so the URL that `memboard open`
prints carries a token. The first page of a browser puts it into a cookie that no script
can read and no other site's page can use, and goes on to the same address without it: it
stays neither in the address bar nor in a `Referer`.
"""

from __future__ import annotations

import re
import secrets
import socket
from base64 import b64encode
from functools import cached_property
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from werkzeug.wrappers import Response

from memboard.tb_plugin.contract.errors import HostError, TokenError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from werkzeug.wrappers import Request

EVERYWHERE: Final = ""
"""The address of a server that listens on all of the machine's."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.%]+\]|[^\[\]:@/,\s]+?)\.?(:\d{1,5})?", re.ASCII)
_MAX_SHOWN: Final = 120

WORD: Final = "token"

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


class Hosts:
    """Who may be named as the host of a request.

    A server that only this machine reaches is named `localhost`, or by a loopback
    address, in every request. One that others reach may have any name, as far as it is
    read; files it takes under its own names alone.
    """

    def __init__(
        self, bound: str | None, named: str = "", option: str = "--memboard_hosts"
    ) -> None:
        """`bound`: what the server listens on, None for TensorBoard's own choice.

        `named`: further names, with commas between them; `option` is what gives them.
        """
        self._bound = "localhost" if bound is None else _plain(bound)
        self._named = frozenset(map(_named, filter(None, re.split(r"[,\s]+", named))))
        self._option = option

    def check(self, request: Request, *, takes_files: bool = False) -> None:
        """Refuse a request that names another host.

        Raises:
            HostError: it does.
        """
        if not (takes_files or self._is_private):
            return
        header = request.headers.get("Host", "")
        match = _HOST.fullmatch(header.lower())
        host_name = _plain(match[1]) if match else ""
        if match and self._is_own(host_name):
            return
        shown = header[:_MAX_SHOWN]
        raise HostError(
            f"MemBoard does not answer to the host name {host_name[:_MAX_SHOWN]}."
            if match
            else "MemBoard does not answer to a request without a valid host name.",
            f"Host: {shown or 'missing'}",
            "Open the page as localhost or by this machine's own name. If this is the"
            " name of a proxy that leads here on purpose, start again with"
            f" {self._option}={host_name[:_MAX_SHOWN] or 'NAME'}",
        )

    @cached_property
    def _is_private(self) -> bool:
        """Whether only this machine reaches the server."""
        if self._bound in (EVERYWHERE, "localhost"):
            return self._bound == "localhost"
        address = _address(self._bound)
        if address is not None:
            return address.is_loopback
        try:
            addresses = socket.getaddrinfo(self._bound, None, type=socket.SOCK_STREAM)
        except OSError:
            return False
        return all(ip_address(str(address[4][0])).is_loopback for address in addresses)

    @cached_property
    def _machine(self) -> frozenset[str]:
        """The machine's own names; looking them up may take a while."""
        return frozenset((socket.gethostname().lower(), socket.getfqdn().lower()))

    def _is_own(self, host_name: str) -> bool:
        if (
            host_name == "localhost"
            or host_name in self._named
            or host_name == self._bound
        ):
            return True
        address = _address(host_name)
        if self._is_private:
            return address is not None and address.is_loopback
        # An address, unlike a name, cannot be made to lead somewhere else.
        return address is not None or host_name in self._machine


def _plain(host: str) -> str:
    return host.strip("[]").lower()


def _named(text: str) -> str:
    """The name in what a person gives: a name, `name:port` or a whole URL."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


def _address(host_name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host_name)
    except ValueError:
        return None


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
        has_cookie = any(map(self._is_token, request.cookies.getlist(cookie)))
        token = request.args.get(WORD)
        if token is None and has_cookie:
            return None
        # A token for once is spent even where it was not needed.
        if (token is not None and self._lets_in(token, request.method)) or has_cookie:
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


def _are_equal(sent: str, other: str) -> bool:
    """Takes as long for any text, so that nobody finds a token letter by letter."""
    return secrets.compare_digest(sent.encode("utf-8", "replace"), other.encode())


def _cookie_of(request: Request) -> str:
    """Its name: cookies are one host's, whatever the port, and servers are told apart.

    The port that the browser sees is another one behind a tunnel.
    """
    port = request.environ["SERVER_PORT"]
    seen = request.headers.get("Host", "").rpartition(":")[2]
    return f"memboard-{port}" + (f"-{seen}" if seen.isdigit() and seen != port else "")
