"""Names as tiles have them: cut where they are long."""

from __future__ import annotations

from typing import Final

MAX_NAME: Final = 160


def shortened(text: str) -> str:
    """A name as tiles have it; told apart at its end too, where templates differ."""
    if len(text) <= MAX_NAME:
        return text
    return f"{text[: MAX_NAME - 41]}…{text[-40:]}"
