"""Errors of fsspec's file systems, sorted by what a person can do about them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal[
    "package",
    "hadoop",
    "protocol",
    "credentials",
    "bucket",
    "denied",
    "missing",
    "away",
]

EXTRAS: Final = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "azure"),
    **dict.fromkeys(("hdfs", "webhdfs"), "hdfs"),
}
"""The extra of MemBoard's that brings a protocol's package."""

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_MISSING: Final = (
    "NoCredentials",
    "PartialCredentials",
    "CredentialUnavailable",
    "DefaultCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
    "TokenRetrievalError",
    "SSOTokenLoadError",
    "RefreshError",
)
_NO_BUCKET: Final = frozenset(
    {"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"}
    | {"InvalidResourceName", "ContainerBeingDeleted"}
)
_NO_ENTRY: Final = frozenset(
    {"403", "401", "AccessDenied", "Forbidden", "Unauthorized", "AllAccessDisabled"}
    | {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
    | {"AuthenticationFailed", "AuthorizationFailure", "NoAuthenticationInformation"}
    | {"AuthorizationPermissionMismatch", "InvalidAuthenticationInfo"}
    | {"PublicAccessNotPermitted"}
)
_BUSY: Final = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "503"})
_AWAY: Final = (
    "Connect",
    "Timeout",
    "ServerDisconnected",
    "ClientOSError",
    "gaierror",
    "HTTPClientError",
    "BrokenPipe",
    "ServiceRequestError",
    "ServiceResponseError",
    "ProxyError",
    "SSLError",
    "ClientConnector",
    "ResponseStreamingError",
)


class Refusal(NamedTuple):
    """Why a file system gave an error."""

    kind: Kind | None  # None: nobody knows
    shown: str
    """The error's name and codes. Its text may hold signed addresses and keys."""


def refusal_of(error: BaseException) -> Refusal:
    """An error of a file system's, sorted."""
    chain = list(_chain(error))
    codes = set(filter(None, map(_code_of, chain)))
    shown = ", ".join([type(error).__name__, *sorted(codes)])[:120]
    return Refusal(_kind_of(error, chain, codes), shown)


def _kind_of(
    error: BaseException, chain: list[BaseException], codes: set[str]
) -> Kind | None:
    names = " ".join(type(link).__name__ for link in chain)
    messages = " ".join(str(link) for link in chain)
    is_away = codes & _BUSY or isinstance(error, TimeoutError | ConnectionError)
    is_denied = codes & _NO_ENTRY or isinstance(error, PermissionError)
    sorts: dict[Kind, object] = {
        "package": isinstance(error, ImportError) or "should be installed" in messages,
        "hadoop": "libhdfs" in messages or "libjvm" in messages,
        "protocol": isinstance(error, ValueError) and "Protocol not known" in messages,
        "credentials": any(word in names for word in _MISSING)
        or "Must provide either" in messages,
        "bucket": codes & _NO_BUCKET or "bucket does not exist" in messages,
        "denied": is_denied or "ClientAuthenticationError" in names,
        "missing": isinstance(error, FileNotFoundError),
        "away": is_away or any(word in names for word in _AWAY),
    }
    return next((kind for kind, is_so in sorts.items() if is_so), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


def _code_of(error: BaseException) -> str:
    """`NoSuchBucket`, `403` and the like; empty where it tells none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        error_part = response.get("Error")
        code: Any = error_part.get("Code") if isinstance(error_part, dict) else None
    else:
        code = getattr(error, "error_code", None) or getattr(error, "code", None)
        code = getattr(error, "status_code", None) if code is None else code
        code = getattr(code, "value", code)
    return str(code) if _CODE.fullmatch(str(code)) and code is not None else ""
