"""Where files go: the url and the key that the settings' templates give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.mirror.templates import filled, key_of
from collector.mirror.waiting import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.core.rank import Identity
    from collector.mirror.contract import Kind


class Place(NamedTuple):
    """Of one file at the other end."""

    url: str
    """The mirror's, its variables filled in, without a slash at the end."""
    key: str


class Naming:
    """Names files by the settings and by who this process is at the time."""

    def __init__(
        self,
        settings: RemoteConfig,
        run_dir: Path,
        identify: Callable[[], Identity],
        stem: Callable[[], str],
    ) -> None:
        """`stem`: the rank file's name, without ending and segment, by now."""
        self._settings = settings
        self._run_dir = run_dir
        self._identify = identify
        self._stem = stem

    def place(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None
    ) -> Place | None:
        """The url and the key of a file; None where its kind stays here."""
        template: str | None = getattr(self._settings, kind)
        if template is None or not self._settings.url:
            return None
        known = self._known()
        below = shown(path, self._run_dir)
        known["path"] = path.name if path.as_posix() == below else below
        known["name"] = path.name
        known["attempt"] = self._stem().partition("-")[2]
        url = filled(self._settings.url, known).rstrip("/")
        return Place(url, key_of(template, {**known, **(values or {})}))

    def _known(self) -> dict[str, object]:
        who = self._identify()
        return {
            "run_name": self._run_dir.name,
            "rank": who.rank,
            "local_rank": who.local_rank,
            "world_size": who.world_size,
            "local_world_size": who.local_world_size,
            "node_rank": who.node_rank,
        }
