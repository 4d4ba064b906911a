"""Says whether the committed page in `static/` is the one its sources make.

Whoever installs the plugin needs no Node: the built page is committed. `BUILD.json`
beside it holds one digest over everything the build reads and one per file it wrote, so
a stale or hand-edited page is found without building anything.

    python -m memboard.tb_plugin.contract.bundle --check    exit 1 where the page is not the sources'
    python -m memboard.tb_plugin.contract.bundle --stamp    written by `npm run build` after building
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

STATIC_FOLDER = Path(__file__).resolve().parents[1] / "static"
FRONTEND_FOLDER = STATIC_FOLDER.parent.parent / "frontend"
STAMP_NAME = "BUILD.json"

_TOP_LEVEL_SOURCES = (
    "app.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
)
_NOT_BUILT = (".test.ts", ".test.tsx")


def source_files(frontend: Path) -> list[Path]:
    """Everything the build reads, tests left out, in a fixed order."""
    paths = [frontend / name for name in _TOP_LEVEL_SOURCES]
    paths += [
        path
        for path in (frontend / "src").rglob("*")
        if path.is_file() and not path.name.endswith(_NOT_BUILT)
    ]
    return sorted(paths, key=lambda path: path.relative_to(frontend).as_posix())


def sources_digest(frontend: Path) -> str:
    """One SHA-256 over the sources' names and contents.

    Line ends are taken as LF, so a checkout that turned them into CRLF agrees.
    """
    digest = hashlib.sha256()
    for path in source_files(frontend):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        path_text = path.relative_to(frontend).as_posix()
        digest.update(f"{path_text}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def file_digests(static: Path) -> dict[str, str]:
    """SHA-256 of every built file, by its path below `static`."""
    return {
        path.relative_to(static).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in sorted(static.rglob("*"))
        if path.is_file() and path != static / STAMP_NAME
    }


def stamp(static: Path, frontend: Path) -> None:
    """Writes `BUILD.json` for a page that was just built."""
    content = {"sources": sources_digest(frontend), "files": file_digests(static)}
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    (static / STAMP_NAME).write_text(text, encoding="utf-8", newline="\n")


def problems(static: Path, frontend: Path) -> list[str]:
    """What is wrong with the built page, one sentence each; empty where all is well.

    Where the sources are not there (an installed wheel) only the files are compared.
    """
    try:
        stamp = json.loads((static / STAMP_NAME).read_text(encoding="utf-8"))
        files = dict(stamp["files"])
        sources = str(stamp["sources"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{static / STAMP_NAME} cannot be read ({error}): run `npm run build`"]
    sentences: list[str] = []
    present = (frontend / "package-lock.json").is_file()
    if present and sources_digest(frontend) != sources:
        sentences.append(
            f"{static} was built from other sources than {frontend} holds: "
            "run `npm run build`"
        )
    actual = file_digests(static)
    for file_name in sorted(files.keys() | actual.keys()):
        if file_name not in actual:
            sentences.append(f"{static / file_name} is missing: run `npm run build`")
        elif file_name not in files:
            sentences.append(
                f"{static / file_name} is not part of the build: delete it"
            )
        elif files[file_name] != actual[file_name]:
            sentences.append(f"{static / file_name} was changed after the build")
    return sentences


def main(argv: list[str] | None = None) -> int:
    """Checks or stamps the built page."""
    parser = argparse.ArgumentParser(
        prog="python -m memboard.tb_plugin.contract.bundle"
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare, write nothing")
    action.add_argument("--stamp", action="store_true", help="write BUILD.json")
    options = parser.parse_args(argv)
    if options.stamp:
        stamp(STATIC_FOLDER, FRONTEND_FOLDER)
        return 0
    sentences = problems(STATIC_FOLDER, FRONTEND_FOLDER)
    for sentence in sentences:
        sys.stderr.write(f"{sentence}\n")
    return 1 if sentences else 0


if __name__ == "__main__":
    raise SystemExit(main())
