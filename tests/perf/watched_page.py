"""A page of Chromium that nothing listens to but us, for its times and its memory.

Playwright's own pages record the network: their renderer then holds every answer twice,
once for the developer tools, which at megabytes an answer is most of what is measured.
So the page is a target of its own, and of it only what is needed is switched on.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WAIT_S = 900.0
INPUT_S = 120.0
_ANSWER_S = 300.0
_LOOK_S = 0.05
"""Between two looks: the page notes times itself, and each look takes time from it."""
_SIZE = {"width": 1440, "height": 900}
MB = 1e6

# Runs in every frame before its own scripts. A picture is there when `look` finds it.
_WATCH = """(() => {
  const twice = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
  const drawn = () => {
    if (document.querySelector('svg polygon') !== null) return true;
    const cells = document.querySelector('canvas.block-cells');
    if (cells === null || cells.width < 2 || cells.height < 2) return false;
    const column = cells.getContext('2d', {willReadFrequently: true})
      .getImageData(cells.width >> 1, 0, 1, cells.height).data;
    for (let i = 3; i < column.length; i += 4) if (column[i] > 0) return true;
    return false;
  };
  const look = () => {
    if (drawn()) twice(() => { window.drawnAt = Date.now(); });
    else requestAnimationFrame(look);
  };
  look();
  window.inputMs = [];
  const timed = (event) => {
    twice(() => window.inputMs.push(performance.now() - event.timeStamp));
  };
  addEventListener('mousemove', timed, true);
  addEventListener('wheel', timed, {capture: true, passive: true});
  addEventListener('change', () => { window.chosenAt = Date.now(); }, true);
})()"""

# The window with the picture, our own or TensorBoard's iframe; else the top one.
_DRAWN = """((find) => find(find, window) ?? window)((find, one) => {
  if (one.drawnAt) return one;
  for (let i = 0; i < one.frames.length; i += 1) {
    try {
      const found = find(find, one.frames[i]);
      if (found) return found;
    } catch { /* of another origin */ }
  }
  return null;
})"""


class TabCrashedError(Exception):
    """The tab is gone."""


class WatchedPage:
    """One page in a browser context of its own."""

    def __init__(self, browser: Browser) -> None:
        self._session = browser.new_browser_cdp_session()
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._crashed = False
        self._session.on("Target.receivedMessageFromTarget", self._receive)
        context = self._session.send("Target.createBrowserContext")
        where = {"browserContextId": context["browserContextId"], **_SIZE}
        target = self._session.send(
            "Target.createTarget", {"url": "about:blank", **where}
        )
        attached = self._session.send(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": False}
        )
        self._target = attached["sessionId"]
        self._send("Inspector.enable")
        self._send("Page.enable")
        self._send("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)

    def go(self, url: str) -> None:
        """Begin to load a page."""
        self._send("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """A value of the window with the picture, which `expression` calls `w`."""
        code = f"((w) => ({expression}))({_DRAWN})"
        answer = self._send("Runtime.evaluate", expression=code, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = WAIT_S) -> Any:
        """What an expression comes to, once it is true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := self.evaluate(expression):
                return found
            time.sleep(_LOOK_S)
        raise SystemExit(f"not within {seconds:.0f} s: {expression}")

    def drawn_at(self, seconds: float = WAIT_S) -> float:
        """Since when there is a picture (Unix time)."""
        return float(self.wait_for("w.drawnAt ?? 0", seconds)) / 1e3

    def choose(self, selector: str, file: Path) -> None:
        """Put a file into an input of the page."""
        self.wait_for(f"w.document.querySelector({selector!r}) !== null", INPUT_S)
        root = self._send("DOM.getDocument")["root"]["nodeId"]
        node = self._send("DOM.querySelector", nodeId=root, selector=selector)
        self._send("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[str(file)])

    def latencies(
        self, target: str, moves: int, notches: int, rest_s: float
    ) -> dict[str, list[float]]:
        """Milliseconds of moves of the pointer over it, and of notches of the wheel.

        `rest_s`: pause after each notch.
        """
        box = self._box(target)

        def at(i: int) -> dict[str, float]:
            # Steps of the golden ratio: never twice on the same block.
            return {
                "x": box["x"] + box["width"] * (0.15 + 0.7 * ((0.618 * i) % 1)),
                "y": box["y"] + box["height"] * (0.45 + 0.5 * ((0.414 * i) % 1)),
            }

        hover = [self._timed(type="mouseMoved", **at(i)) for i in range(moves)]
        self._timed(type="mouseMoved", **at(0))
        wheel = {"type": "mouseWheel", "deltaX": 0, "deltaY": -120, **at(0)}
        zoom = []
        for _ in range(notches):
            zoom.append(self._timed(**wheel))
            time.sleep(rest_s)
        return {"hover": hover, "zoom": zoom}

    def private_mb(self) -> float:
        """What the page's process holds for itself now."""
        return max(map(_private_mb, self._renderers()))

    def peak_mb(self) -> float:
        """The most that it ever held, Chromium's own code included."""
        return max(map(_peak_mb, self._renderers()))

    def _renderers(self) -> list[int]:
        told = self._session.send("SystemInfo.getProcessInfo")["processInfo"]
        return [one["id"] for one in told if one["type"] == "renderer"]

    def _box(self, target: str) -> dict[str, float]:
        """Of an element, seen from the top window."""
        return json.loads(
            self.evaluate(
                "((one, x, y) => JSON.stringify({x: one.x + x, y: one.y + y,"
                " width: one.width, height: one.height}))"
                f"(w.document.querySelector({target!r}).getBoundingClientRect(),"
                " w.frameElement?.getBoundingClientRect().x ?? 0,"
                " w.frameElement?.getBoundingClientRect().y ?? 0)"
            )
        )

    def _timed(self, **event: Any) -> float:
        self.evaluate("w.inputMs.length = 0")
        self._send("Input.dispatchMouseEvent", **event)
        return float(self.wait_for("w.inputMs[0] ?? 0", INPUT_S))

    def _receive(self, event: dict[str, Any]) -> None:
        message = json.loads(event["message"])
        if message.get("method") == "Inspector.targetCrashed":
            self._crashed = True
        elif "id" in message:
            self._answers[message["id"]] = message

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = json.dumps({"id": number, "method": method, "params": params})
        self._session.send(
            "Target.sendMessageToTarget",
            {"sessionId": self._target, "message": message},
        )
        deadline = time.monotonic() + _ANSWER_S
        while number not in self._answers:
            if self._crashed or time.monotonic() > deadline:
                raise TabCrashedError
            # Events come in while something else is asked.
            self._session.send("Browser.getVersion")
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]


def _peak_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) * 1024 / MB if found else 0.0


def _private_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)
    return sum(map(int, found)) * 1024 / MB
