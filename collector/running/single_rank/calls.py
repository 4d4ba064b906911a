"""Objects of ranks that run one after the other, as files; absent ranks are called.

A rank that needs what an absent one sends asks for it: whoever started the processes starts
that one too, and ends it when it is needed no more. Stages of a pipeline so tell each other
the shapes of what they send. The folder holds:

    sent/NAME          what a rank has sent
    wanted/RANK        some rank waits for this one
    over/RANK          a rank that was called has ended: why nothing more will come of it
"""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Final

from memboard.collector.process.whole_file import write_whole

_SENT: Final = "sent"
_WANTED: Final = "wanted"
_OVER: Final = "over"
_NO_NAME: Final = re.compile(r"[^\w.-]")
_MAX_NAME: Final = 100
_MAX_ABSENT: Final = 40
_POLL_SECONDS: Final = 0.02


class CallError(Exception):  # no error of the program's
    """A rank was called and does not send what it should; says why."""


class Absences:
    """What did not come, in words: each once, and so many at most."""

    def __init__(self, absent_texts: list[str]) -> None:
        # `absent_texts`: where they go
        self._words = absent_texts

    def add(self, text: str) -> None:
        if text not in self._words and len(self._words) < _MAX_ABSENT:
            self._words.append(text)


class Files:
    """Mail of ranks that run one after the other; the ranks' own end of it."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def put(self, key: str, content: bytes) -> None:
        """Send it: keys are unique, and ranks that run twice send the same twice."""
        _write(self._folder / _SENT / _file_name(key), content)

    def get(self, key: str) -> bytes | None:
        """What was sent; None where it has not been."""
        try:
            return (self._folder / _SENT / _file_name(key)).read_bytes()
        except FileNotFoundError:
            return None

    def need(self, key: str, rank: int) -> bytes:
        """What a rank sends; it is called where it has not, and waited for.

        Raises:
            CallError: it does not come.
        """
        content = self.get(key)
        if content is not None:
            return content
        over = self._folder / _OVER / str(rank)
        _write(self._folder / _WANTED / str(rank), b"")
        while (content := self.get(key)) is None:
            if over.exists():
                # It may have sent it as the last it did.
                content = self.get(key)
                if content is None:
                    raise CallError(over.read_text(encoding="utf-8"))
                return content
            time.sleep(_POLL_SECONDS)
        return content


class Calls:
    """The same folder, as whoever starts the processes sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for subfolder in (_SENT, _WANTED, _OVER):
            (folder / subfolder).mkdir(parents=True, exist_ok=True)

    def wanted(self) -> list[int]:
        """Ranks that are waited for and were not told of before, in order."""
        ranks = sorted(
            int(path.name)
            for path in (self._folder / _WANTED).iterdir()
            if path.name.isdecimal()
        )
        for rank in ranks:
            (self._folder / _WANTED / str(rank)).unlink()
        return ranks

    def over(self, rank: int, why: str) -> None:
        """Nothing more comes of a rank."""
        _write(self._folder / _OVER / str(rank), why.encode())

    def forget(self) -> None:
        """Whoever was called may be called again."""
        for subfolder in (_WANTED, _OVER):
            for path in (self._folder / subfolder).iterdir():
                path.unlink()


def _file_name(key: str) -> str:
    """Of a group of ranks that are not evenly apart the name has all of them."""
    plain = _NO_NAME.sub("_", key)
    if len(plain) <= _MAX_NAME:
        return plain
    return f"{plain[:_MAX_NAME]}.{hashlib.sha256(key.encode()).hexdigest()}"


def _write(path: Path, content: bytes) -> None:
    """Whoever sees it sees all of it."""
    write_whole(path, content, path.parent.parent)
