"""A file or folder named `collector` that Python finds in place of our package.

It lies where Python looks first: beside the script that was started, in the directory of
`python -m`, or on PYTHONPATH. Nothing here may import the package itself.
"""

from __future__ import annotations

import json
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

_logger = logging.getLogger("memboard")


def hidden_by() -> str:
    """What hides our package, and what to do, as sentences; empty: nothing does."""
    try:
        ours = Path(__file__).resolve().parent.parent / "collector" / "__init__.py"
        loaded = sys.modules.get("collector")
        spec = find_spec("collector") if loaded is None else loaded.__spec__
        if spec is None:
            return ""
        found = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if not found or Path(found).resolve() == ours:
            return ""
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        _logger.debug("what hides the package could not be found", exc_info=True)
        return ""
    return (
        f"{found} hides MemBoard's own package 'collector'. Rename it, or start from"
        " another directory."
    )


class HiddenPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The tab where the plugin cannot be loaded: it says why."""

    plugin_name = "memboard"

    def __init__(self, sentence: str) -> None:
        """`sentence`: what `hidden_by` says."""
        self._sentence = sentence

    def get_plugin_apps(self) -> Mapping[str, Any]:
        """The module that TensorBoard draws the tab with."""
        return {"/index.js": Request.application(self._module)}

    def is_active(self) -> bool:
        """Always: it has something to say."""
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """How TensorBoard shows the tab."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name="MemBoard"
        )

    def _module(self, _request: Request) -> Response:
        text = json.dumps(f"MemBoard could not be loaded. {self._sentence}")
        body = f"export function render() {{ document.body.textContent = {text}; }}\n"
        headers = {"X-Content-Type-Options": "nosniff"}
        return Response(body, headers=headers, mimetype="text/javascript")
