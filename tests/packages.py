"""Checks what users and packagers get: the sdist, the wheel that is built of it, its types.

    python -m tests.packages FOLDER [PYTEST_ARGUMENT ...]

Builds both into FOLDER. The sdist holds what git tracks and nothing else; unpacked, it
builds the wheel and passes the tests that are named (all of them where none is, as
`pytest` chooses). The wheel holds both packages, the licences and nothing else; installed
into an environment of its own, a program that uses it passes mypy. Ends with 1 where
anything is wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROGRAM = """\
import memboard as mb

with mb.record("runs", history=True) as rec:
    rec.step()
    reveal_type(rec.step)
"""
MISUSED = PROGRAM.replace("history=True", "history='a little'").replace(
    "step()", "stop()"
)


LINKS = {
    ".package/memboard/collector": "collector/",
    ".package/memboard/tb_plugin": "tb_plugin/",
}
"""What the package has of the repository's folders. hatchling packs no links: an editable
installation of what is unpacked makes them."""


def run(*command: object, cwd: Path = ROOT) -> str:
    words = list(map(str, command))
    return subprocess.run(words, check=True, stdout=-1, text=True, cwd=cwd).stdout


def compared(what: str, found: set[str], wanted: set[str]) -> bool:
    """Whether the names are those wanted; prints what is missing and what is extra."""
    for word, names in (("lacks", wanted - found), ("has besides", found - wanted)):
        if names:
            print(f"{what} {word}: {', '.join(sorted(names))}")
    print(f"{what}: {len(found)} files")
    return found == wanted


def is_whole_sdist(path: Path, tracked: set[str]) -> bool:
    with tarfile.open(path) as archive:
        names = {one.name.partition("/")[2] for one in archive if one.isfile()}
    return compared("sdist", names, tracked - set(LINKS) | {"PKG-INFO"})


def is_whole_wheel(path: Path, tracked: set[str]) -> bool:
    info = "-".join(path.name.split("-")[:2]) + ".dist-info"
    package = ".package/"
    ours = {one.removeprefix(package) for one in tracked if one.startswith(package)}
    ours -= {one.removeprefix(package) for one in LINKS}
    ours |= {
        f"memboard/{one}" for one in tracked if one.startswith(tuple(LINKS.values()))
    }
    about = ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
    licences = ("LICENSE", "tb_plugin/static/NOTICES.txt")
    wanted = ours | {f"{info}/{one}" for one in about}
    wanted |= {f"{info}/licenses/{one}" for one in licences}
    return compared("wheel", set(zipfile.ZipFile(path).namelist()), wanted)


def has_types(python: Path, folder: Path) -> bool:
    """Whether mypy knows our types, and finds what is wrong by them."""
    right, wrong = folder / "right.py", folder / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(MISUSED)
    mypy = [str(python), "-m", "mypy", "--strict"]
    passed = subprocess.run(
        [*mypy, str(right)], check=False, stdout=-1, text=True, cwd=folder
    )
    failed = subprocess.run(
        [*mypy, str(wrong)], check=False, stdout=-1, text=True, cwd=folder
    )
    print(f"mypy: {passed.stdout.strip()}\nmisused: {failed.stdout.strip()}")
    knows = "Revealed type is" in passed.stdout and "Any" not in passed.stdout
    return passed.returncode == 0 and knows and "Found 2 errors" in failed.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pytest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tracked = set(run("git", "ls-files").splitlines())
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, cwd=source)
    (wheel,) = folder.glob("*.whl")
    good = [is_whole_sdist(sdist, tracked), is_whole_wheel(wheel, tracked)]
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[viewer]", "mypy", "twine")
    print(run(python, "-m", "twine", "check", sdist, wheel))
    good.append(has_types(python, folder))
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", source)
    for link, target in LINKS.items():
        good.append((source / link).samefile(source / target))
    tests = [sys.executable, "-m", "pytest", *(options.pytest or ["-q"])]
    good.append(subprocess.run(tests, check=False, cwd=source).returncode == 0)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
