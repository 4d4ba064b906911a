"""What a person names on the command line: a path, or the URL of a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_or_url(text: str) -> Path | str:
    """What a person named: a URL stays a text, `file://` is a path like others."""
    from tb_plugin.storage.urls import is_url  # late: `--help` needs none of it

    if not is_url(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return text
