"""Takes the README's picture, or every page in both themes and two widths for review.

Run: python tests/e2e/screenshots.py [--all DIR] [--simulate 64]

Writes a simulated run, and with --all also records a real demo of 2 ranks, opens them
through TensorBoard in headless Chromium and writes PNGs: the README's into
frontend/screenshots, or with --all the whole set into a folder of yours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import Server, chromium, tensorboard  # noqa: E402

HERE = ROOT / "frontend" / "screenshots"

# name, run, page, theme, width
README = [("overview", "simulated", "overview", "light", 1280)]

WORDS = {
    "-details": "&p.memboard.module=Transformer.layers.20",
    "-ranks": "&p.memboard.part=ranks",
}
"""What pictures whose name ends so have in their address."""

PLACES = {"-held": ".ledger"}
"""What pictures whose name ends so have at their top."""


def record(logdir: Path, ranks: int, *, train: bool) -> None:
    demo = [sys.executable, "-m", "memboard.tb_plugin.cli", "demo", "--no-serve"]
    out = ["--out", str(logdir)]
    if train:
        subprocess.run(
            [*demo, "--train", "--simulate", "0", "--ranks", "2", *out],
            cwd=ROOT,
            check=True,
        )
    subprocess.run([*demo, "--simulate", str(ranks), *out], cwd=ROOT, check=True)


def run_ids(server: Server) -> dict[str, str]:
    """Our run ids by kind of run."""
    body = server.get("data/plugin/memboard/runs")
    length = int.from_bytes(body[:4], "little")
    runs = json.loads(body[4 : 4 + length])["data"]["runs"]
    return {"simulated" if r["simulated"] else "demo": r["id"] for r in runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path)
    parser.add_argument("--simulate", type=int, default=64)
    options = parser.parse_args()
    folder = options.all or HERE
    folder.mkdir(parents=True, exist_ok=True)
    wanted = README
    if options.all:
        pages = (
            "overview",
            "timeline",
            "steps",
            "trace",
            "modules",
            "calls",
        )
        histories = ("blocks", "blocks-held", "segments", "compare")
        combined = product(
            ("demo", "simulated"), pages, ("light", "dark"), (1280, 1920)
        )
        wanted = [(f"{run}-{page}", run, page, t, w) for run, page, t, w in combined]
        wanted += [
            ("simulated-modules-details", "simulated", "modules", theme, width)
            for theme, width in product(("light", "dark"), (1280, 1920))
        ]
        wanted += [
            (f"simulated-{name}", "simulated", name.partition("-")[0], theme, width)
            for name, theme, width in product(
                (*histories, "compare-ranks"), ("light", "dark"), (1280, 1920)
            )
        ]
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        logdir = Path(temporary) / "runs"
        record(logdir, options.simulate, train=options.all is not None)
        log = Path(temporary) / "tensorboard.log"
        with tensorboard(["--logdir", logdir], log) as server:
            ids = run_ids(server)
            for name, run, page, theme, width in wanted:
                shot = browser.new_page(viewport={"width": width, "height": 900})
                state = f"p.memboard.run={ids[run]}&p.memboard.view={page}"
                state += "".join(WORDS[end] for end in WORDS if name.endswith(end))
                dark = str(theme == "dark").lower()
                shot.goto(f"{server.url}?darkMode={dark}#memboard&{state}")
                frame = shot.frame_locator("iframe")
                frame.locator(".runs .run").first.wait_for(timeout=60_000)
                shot.wait_for_load_state("networkidle", timeout=120_000)
                shot.wait_for_timeout(2500)  # histories are opened, then drawn
                for end, place in PLACES.items():
                    if name.endswith(end):
                        frame.locator(place).evaluate("e => e.scrollIntoView()")
                        shot.wait_for_timeout(500)
                shot.screenshot(path=folder / f"{name}-{theme}-{width}.png")
                shot.close()
    print(*sorted(folder.glob("*.png")), sep="\n")


if __name__ == "__main__":
    main()
