"""Errors that a request can get instead of an answer."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be answered: the client gets what, where and what to do."""

    status: int = 500

    def __init__(
        self, what: str, where: str, remedy: str, status: int | None = None
    ) -> None:
        """`status`: of HTTP, where it is not that of the class."""
        super().__init__(what)
        if status is not None:
            self.status = status
        self.what = what
        self.where = where
        self.remedy = remedy


class NotFoundError(RequestError):
    """What the query names is not there."""

    status = 404


class BadRequestError(RequestError):
    status = 400


class UnreadableError(RequestError):
    """What is there cannot be opened."""

    status = 422


class NotReadyError(RequestError):
    """It is still being opened: ask again."""

    status = 503


class MethodError(RequestError):
    """Routes have no side effects: they are only for GET, but for the one of drops."""

    status = 405

    def __init__(
        self, what: str, where: str, remedy: str, *, allow: str = "GET, HEAD"
    ) -> None:
        super().__init__(what, where, remedy)
        self.allow = allow


class HostError(RequestError):
    """Under a name that is not the server's."""

    status = 403


class TokenError(RequestError):
    """Without the token of `memboard open`."""

    status = 403


class StalledError(RequestError):
    """A dropped file stopped coming."""

    status = 408


class HeldError(Exception):
    """The client holds the answer already: it is told so, and nothing is made."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag = etag
