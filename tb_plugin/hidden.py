"""The tab of a TensorBoard whose Python finds another package `collector` than ours.

Nothing here may import the package itself.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

_logger = logging.getLogger("memboard")


class HiddenPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The tab where the plugin cannot be loaded: it says why."""

    plugin_name = "memboard"

    def __init__(self, sentence: str) -> None:
        # `sentence`: what `hidden_by` says
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
