"""Links the repository's folders into the package of an editable installation.

git keeps the links; an sdist has none, as hatchling follows them, nor has a checkout on a
system that makes none, where each is a file with its target's name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("collector", "tb_plugin")


def make_links(root: Path) -> None:
    """Make those of `.package` that are missing."""
    for name in FOLDERS:
        link = root / ".package" / "memboard" / name
        if not link.is_dir():
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..", "..", name), target_is_directory=True)


class Links(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Of a wheel, nothing is linked."""
        if version == "editable":
            make_links(Path(self.root))
