"""How end-to-end tests look at MemBoard's page inside TensorBoard's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import FrameLocator, Page

PATIENCE_MS = 30_000


def tab(page: Page) -> FrameLocator:
    """MemBoard's own page inside TensorBoard's."""
    return page.frame_locator("iframe")


def see(scope: FrameLocator | Page, text: str) -> None:
    """Wait until `text` is visible."""
    scope.get_by_text(text).first.wait_for(state="visible", timeout=PATIENCE_MS)
