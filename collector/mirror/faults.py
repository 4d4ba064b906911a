"""What a store refused, in words, and what to do about it."""

from __future__ import annotations

from typing import Final, NamedTuple

_MAX_REASON: Final = 300

_AWAY: Final = (
    "Connect",
    "Timeout",
    "ServerDisconnected",
    "ClientOSError",
    "gaierror",
    "HTTPClientError",
    "BrokenPipe",
)


class Refusal(NamedTuple):
    """Why an upload failed."""

    key: str
    """The same for refusals that have the same remedy."""
    reason: str
    remedy: str


def refusal_of(error: BaseException) -> Refusal:
    """An error of a file system's, sorted by what a person can do about it."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or at.__context__
    names = " ".join(type(link).__name__ for link in chain)
    text = " ".join(str(error).split()) or type(error).__name__
    reason = f"{type(error).__name__}: {text}"[:_MAX_REASON]
    said = f"{names} {' '.join(str(link) for link in chain)}"
    if "Credential" in said or "InvalidAccessKeyId" in said:
        return Refusal(
            "credentials",
            reason,
            "Give this process the store's credentials (environment, its own file, the"
            " machine's role, or remote.storage_options).",
        )
    if isinstance(error, PermissionError) or "AccessDenied" in said:
        return Refusal(
            "permission", reason, "Allow these credentials to write below remote.url."
        )
    if "NoSuchBucket" in said or "bucket does not exist" in said:
        return Refusal(
            "bucket", reason, "Create the bucket, or correct remote.url; it is retried."
        )
    if any(word in names for word in _AWAY) or "onnect" in text:
        return Refusal(
            "away", reason, "Check the network and the endpoint; it is retried."
        )
    if isinstance(error, FileNotFoundError):
        return Refusal(
            "bucket",
            reason,
            "Make sure that the bucket or directory in remote.url is there; it is"
            " retried.",
        )
    if "should be installed" in text or isinstance(error, ImportError):
        return Refusal("package", reason, "Install the package that is named.")
    return Refusal(
        "refused", reason, "It is retried; see remote.url and remote.storage_options."
    )
