"""Reasons why a store gives nothing, in words that hold none of its secrets."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from memboard.collector.mirror.refusals import EXTRAS
from memboard.collector.mirror.refusals import refusal_of as sorted_refusal
from memboard.tb_plugin.storage.contract import StorageError

if TYPE_CHECKING:
    from memboard.tb_plugin.storage.urls import Url

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
    kind, shown = sorted_refusal(error)
    extra = EXTRAS.get(url.scheme)
    credentials = _CREDENTIALS.get(
        extra or "", "Give this process the store's credentials."
    )
    if kind == "package":
        return StorageError(
            f"{url.scheme}:// needs a package that is not installed",
            f"Where TensorBoard runs: pip install 'memboard[{extra}]'"
            if extra
            else f"Install the file system of fsspec for {url.scheme}://.",
            getattr(errno, "ENOPKG", errno.ENOSYS),
        )
    if kind == "hadoop":
        return StorageError(
            "hdfs:// needs Hadoop's libraries, which were not found",
            "Set HADOOP_HOME and JAVA_HOME, and CLASSPATH to what `hadoop classpath"
            " --glob` prints, where TensorBoard runs.",
            errno.ENOSYS,
        )
    if kind == "protocol":
        return StorageError(
            f"fsspec knows no {url.scheme}://",
            "Check how the address is spelled.",
            errno.EINVAL,
        )
    if kind == "credentials":
        return StorageError(
            f"No credentials were found ({shown})", credentials, errno.EACCES
        )
    if kind == "bucket":
        return StorageError(
            f"There is no such bucket or container ({shown})",
            "Create it, or correct the address.",
            errno.ENOENT,
        )
    if kind == "denied":
        return StorageError(
            f"The store denied access ({shown})",
            f"Allow these credentials to list and to read here. {credentials}",
            errno.EACCES,
        )
    if kind == "missing":
        return StorageError(
            "There is nothing at this address (yet)",
            "Check it; the page updates automatically once something is there.",
            errno.ENOENT,
        )
    if kind == "away":
        return away(shown)
    return StorageError(
        f"The store returned an error ({shown})",
        "The log of TensorBoard may say more; it is tried again.",
    )


def away(shown: str) -> StorageError:
    return StorageError(
        f"The store cannot be reached ({shown})",
        "Check the network and the endpoint. It is tried again; what is known is shown.",
        errno.EHOSTUNREACH,
    )
