"""A logdir's URL as a person wrote it: what of it may be shown, and what fsspec needs.

User names, passwords, queries and fragments may be secret: nothing of them is in a path or
a message. Of Azure's `abfs://container@account...` what stands before the @ is no secret.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

_URL: Final = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")
_BLOB: Final = re.compile(r"([a-z0-9]{3,24})\.blob\.core\.[a-z.]+", re.IGNORECASE)
_NAMED_BY_USER: Final = frozenset({"abfs", "abfss", "az"})
_S3: Final = frozenset({"s3", "s3a"})


@dataclass(frozen=True, slots=True)
class Url:
    """A place at a store."""

    root: str
    """What is shown, and what paths begin with: no secrets, no slash at its end."""
    scheme: str
    whole: str = field(repr=False)
    """For fsspec; may hold secrets."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec's file system; may hold secrets."""

    @property
    def parent(self) -> Url | None:
        """The folder it lies in; None where that is no path of the same store."""
        if self.root.count("/") < 3:
            return None
        return Url(
            self.root.rpartition("/")[0],
            self.scheme,
            self.whole.rstrip("/").rpartition("/")[0],
            self.options,
        )


def is_url(text: str) -> bool:
    """Whether a person named a URL and no path; `file://` is one as well."""
    return _URL.match(text) is not None


def parse_url(text: str) -> Url:
    """A URL other than `file://` ones."""
    parts = urlsplit(text)
    scheme = parts.scheme.lower()
    user, _, host = parts.netloc.rpartition("@")
    account = _BLOB.fullmatch(host)
    if scheme in ("https", "http") and account is not None:
        return _azure(account[1], parts.path, parts.query, host)
    shown = f"{user.partition(':')[0]}@{host}" if user else host
    if scheme not in _NAMED_BY_USER:
        shown = host
    path = parts.path
    whole = text.partition("#")[0].partition("?")[0]
    if scheme in ("http", "https"):
        whole = text  # its query is part of the address
    options: dict[str, Any] = {}
    endpoint = os.environ.get("S3_ENDPOINT")
    if scheme in _S3 and endpoint and not os.environ.get("AWS_ENDPOINT_URL"):
        options["endpoint_url"] = endpoint  # TensorBoard's own name for it
    return Url(f"{scheme}://{shown}{path}".rstrip("/"), scheme, whole, options)


def _azure(account: str, path: str, query: str, host: str) -> Url:
    # `https://<account>.blob.core.windows.net/<container>/...`
    inside = unquote(path).strip("/")
    options: dict[str, Any] = {"account_name": account}
    if "sig=" in query:
        options["sas_token"] = query
    root = f"https://{host}/{inside}".rstrip("/")
    return Url(root, "abfs", f"abfs://{inside}", options)
