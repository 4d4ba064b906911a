"""What a request can get instead of an answer.

RequestError             what, where, what to do; answered as JSON with its status
├── NotFoundError        404: no such run, rank or file
├── BadRequestError      400: a parameter that means nothing
└── MethodError          405: anything but GET
"""

from __future__ import annotations

from typing import ClassVar


class RequestError(Exception):
    """A request that cannot be answered."""

    status: ClassVar[int] = 500

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy


class NotFoundError(RequestError):
    """What was asked for is not there."""

    status = 404


class BadRequestError(RequestError):
    """A parameter that means nothing."""

    status = 400


class MethodError(RequestError):
    """Routes have no side effects: they are only for GET."""

    status = 405
