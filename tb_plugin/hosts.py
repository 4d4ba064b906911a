"""The names a server answers to, against pages that make a name of theirs lead here.

A site may let its own name lead to this machine (DNS rebinding). A browser then takes our
answers for the site's own and lets its page read them. The `Host` that the browser sends
is what shows it: no page can change that header. A page can write `X-Forwarded-Host` and
its like, so they count for nothing.
"""

from __future__ import annotations

import re
import socket
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tb_plugin.errors import HostError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from werkzeug.wrappers import Request

EVERYWHERE: Final = ""
"""The address of a server that listens on all of the machine's."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.%]+\]|[^\[\]:@/,\s]+?)\.?(:\d{1,5})?", re.ASCII)
_MAX_SHOWN: Final = 120


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
        found = _HOST.fullmatch(header.lower())
        name = _plain(found[1]) if found else ""
        if found and self._is_own(name):
            return
        shown = header[:_MAX_SHOWN]
        raise HostError(
            f"MemBoard does not answer to the host name {name[:_MAX_SHOWN]}."
            if found
            else "MemBoard does not answer to a request without a valid host name.",
            f"Host: {shown or 'missing'}",
            "Open the page as localhost or by this machine's own name. If this is the"
            " name of a proxy that leads here on purpose, start again with"
            f" {self._option}={name[:_MAX_SHOWN] or 'NAME'}",
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
            found = socket.getaddrinfo(self._bound, None, type=socket.SOCK_STREAM)
        except OSError:
            return False
        return all(ip_address(str(one[4][0])).is_loopback for one in found)

    @cached_property
    def _machine(self) -> frozenset[str]:
        """The machine's own names; looking them up may take a while."""
        return frozenset((socket.gethostname().lower(), socket.getfqdn().lower()))

    def _is_own(self, name: str) -> bool:
        if name == "localhost" or name in self._named or name == self._bound:
            return True
        address = _address(name)
        if self._is_private:
            return address is not None and address.is_loopback
        # An address, unlike a name, cannot be made to lead somewhere else.
        return address is not None or name in self._machine


def _plain(host: str) -> str:
    return host.strip("[]").lower()


def _named(text: str) -> str:
    """The name in what a person gives: a name, `name:port` or a whole URL."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
