"""Why a store gives nothing, in words that hold none of its secrets.

What file systems say may hold signed addresses and keys: of it only the names of errors
and their codes are shown.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.storage.contract import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.storage.urls import Url

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_AWAY: Final = (
    *("Connect", "Timeout", "ServerDisconnected", "ClientOSError", "gaierror"),
    *("HTTPClientError", "BrokenPipe", "ServiceRequestError", "ServiceResponseError"),
    *("ProxyError", "SSLError", "ClientConnector", "ResponseStreamingError"),
)
_BUSY: Final = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "503"})
_MISSING: Final = (
    *("NoCredentials", "PartialCredentials", "CredentialUnavailable"),
    *("DefaultCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
    *("TokenRetrievalError", "SSOTokenLoadError", "RefreshError"),
)
_NO_ENTRY: Final = frozenset(
    {"403", "401", "AccessDenied", "Forbidden", "Unauthorized", "AllAccessDisabled"}
    | {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
    | {"AuthenticationFailed", "AuthorizationFailure", "NoAuthenticationInformation"}
    | {"AuthorizationPermissionMismatch", "InvalidAuthenticationInfo"}
    | {"PublicAccessNotPermitted"}
)
_NO_BUCKET: Final = frozenset(
    {"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"}
    | {"InvalidResourceName", "ContainerBeingDeleted"}
)

_CREDENTIALS: Final = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the"
    " machine a role.",
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth"
    " application-default login",
    "azure": "Set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and"
    " AZURE_STORAGE_ACCOUNT_KEY.",
    "hdfs": "Run kinit, or set HADOOP_USER_NAME.",
}


def refusal_of(error: BaseException, url: Url) -> StorageError:
    """An error of a file system's, sorted by what a person can do about it."""
    chain = list(_chain(error))
    names = " ".join(type(link).__name__ for link in chain)
    codes = set(filter(None, map(_code_of, chain)))
    said = " ".join(str(link) for link in chain)
    shown = _shown(error, codes)
    where_credentials = _CREDENTIALS.get(
        url.extra, "Give this process the store's credentials."
    )
    if isinstance(error, ImportError) or "should be installed" in said:
        return StorageError(
            f"{url.scheme}:// needs a package that is not installed",
            f"Where TensorBoard runs: pip install 'memboard[{url.extra}]'"
            if url.extra
            else f"Install the file system of fsspec for {url.scheme}://.",
            errno.ENOPKG if hasattr(errno, "ENOPKG") else errno.ENOSYS,
        )
    if "libhdfs" in said or "libjvm" in said:
        return StorageError(
            "hdfs:// needs Hadoop's libraries, which were not found",
            "Set HADOOP_HOME and JAVA_HOME, and CLASSPATH to what `hadoop classpath"
            " --glob` prints, where TensorBoard runs.",
            errno.ENOSYS,
        )
    if isinstance(error, ValueError) and "Protocol not known" in said:
        return StorageError(
            f"fsspec knows no {url.scheme}://",
            "Check how the address is spelled.",
            errno.EINVAL,
        )
    if any(word in names for word in _MISSING) or "Must provide either" in said:
        return StorageError(
            f"No credentials were found ({shown})", where_credentials, errno.EACCES
        )
    if codes & _NO_BUCKET or "bucket does not exist" in said:
        return StorageError(
            f"There is no such bucket or container ({shown})",
            "Create it, or correct the address.",
            errno.ENOENT,
        )
    if (
        codes & _NO_ENTRY
        or isinstance(error, PermissionError)
        or "ClientAuthenticationError" in names
    ):
        return StorageError(
            f"The store refused to let us in ({shown})",
            f"Allow these credentials to list and to read here. {where_credentials}",
            errno.EACCES,
        )
    if isinstance(error, FileNotFoundError):
        return StorageError(
            "There is nothing at this address (yet)",
            "Check it; the page fills by itself once something is there.",
            errno.ENOENT,
        )
    if codes & _BUSY or isinstance(error, TimeoutError | ConnectionError):
        return away(shown)
    if any(word in names for word in _AWAY):
        return away(shown)
    return StorageError(
        f"The store gave an error ({shown})",
        "The log of TensorBoard may say more; it is tried again.",
    )


def away(shown: str) -> StorageError:
    """Nobody answers."""
    return StorageError(
        f"The store cannot be reached ({shown})",
        "Check the network and the endpoint. It is tried again; what is known is shown.",
        errno.EHOSTUNREACH,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        seen.append(at)
        yield at
        at = at.__cause__ or at.__context__


def _code_of(error: BaseException) -> str:
    """`NoSuchBucket`, `403` and the like; empty where it tells none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        found = response.get("Error")
        code: Any = found.get("Code") if isinstance(found, dict) else None
    else:
        code = getattr(error, "error_code", None) or getattr(error, "code", None)
        code = getattr(error, "status_code", None) if code is None else code
        code = getattr(code, "value", code)
    return str(code) if _CODE.fullmatch(str(code)) and code is not None else ""


def _shown(error: BaseException, codes: set[str]) -> str:
    return ", ".join([type(error).__name__, *sorted(codes)])[:120]
