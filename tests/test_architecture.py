"""The layering is a test: who may import whom, and what a light import may load."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import house
from tests.empty_names import empty_names
from tests.import_graph import module_name, modules

ROOT = Path(__file__).parent.parent
OURS = ("collector", "tb_plugin")

# module prefix -> what it may import besides the standard library and itself. The
# longest prefix decides. A trailing dot admits submodules only.
ANYTHING = frozenset({"*"})
ALLOWED: dict[str, frozenset[str]] = {
    "memboard.collector.format": frozenset({"numpy", "msgspec", "google_crc32c"}),
    "memboard.collector.sources": frozenset(
        {
            "torch",
            "psutil",
            "pynvml",
            "memboard.collector.core",
            "memboard.collector.process",
            "memboard.collector.format",
            "memboard.collector.config",
        }
    ),
    "memboard.collector.integrations": frozenset(
        {
            "lightning",
            "pytorch_lightning",
            "transformers",
            "composer",
            "memboard.collector",
        }
    ),
    "memboard.collector.simulate": frozenset({"numpy", "memboard.collector"}),
    # It works beside any program, before torch is imported: torch's files are read.
    "memboard.collector.virtual": frozenset(
        {
            "elftools",
            "memboard.collector.process.child_python",
            "memboard.collector.process.private_folder",
            "memboard.collector.virtual",
        }
    ),
    "memboard.collector.cli": ANYTHING,
    "memboard.collector": frozenset(
        {
            "torch",
            "psutil",
            "yaml",
            "msgspec",
            "fsspec",
            "google_crc32c",
            "numpy",
            "memboard.collector",
        }
    ),
    "memboard.tb_plugin.api": frozenset({"msgspec", "numpy"}),
    # The words of module memory are those of the disk contract, and so are the text of
    # a snapshot's plain values, the tags of its allocations, and the unit of sizes.
    "memboard.tb_plugin.analysis": frozenset(
        {
            "msgspec",
            "numpy",
            "memboard.tb_plugin.api",
            "memboard.collector.format.columns",
            "memboard.collector.format.memory",
            "memboard.collector.format.errors",
            "memboard.collector.format.own",
            "memboard.collector.format.sizes",
            "memboard.collector.format.snapshots.plain_text",
            "memboard.collector.format.snapshots.tags",
        }
    ),
    # What reads, and what prints what recorded programs need.
    "memboard.tb_plugin.cli": ANYTHING,
    "memboard.tb_plugin.loader": frozenset(
        {"tensorboard.plugins.base_plugin", "memboard.tb_plugin"}
    ),
    # Errors of file systems are sorted alike where files are written and read.
    "memboard.tb_plugin.storage": frozenset(
        {
            "fsspec",
            "google_crc32c",
            "memboard.tb_plugin",
            "memboard.collector.format",
            "memboard.collector.mirror.refusals",
        }
    ),
    "memboard.tb_plugin": frozenset(
        {
            "numpy",
            "markdown",
            "werkzeug",
            "tensorboard",
            "msgspec",
            "yaml",
            "fsspec",
            "google_crc32c",
            "memboard.collector.format",
            # Pythons that it starts import nothing of the current folder.
            "memboard.collector.process.child_python",
            # Folders of this user's alone are made in one way.
            "memboard.collector.process.private_folder",
            # What a machine, or a container, lets its processes have.
            "memboard.collector.process.control_group",
            "memboard.tb_plugin",
        }
    ),
    "examples": frozenset({"torch", "memboard"}),
    "examples.lightning_trainer": frozenset({"torch", "memboard", "lightning"}),
    "examples.transformers_trainer": frozenset({"torch", "memboard", "transformers"}),
}

# frontend/src folder -> folders it may import from, besides itself.
FRONTEND = {
    "base": set(),
    "api": {"base"},
    "model": {"base", "api"},
    "render": {"base"},
    "widgets": {"base", "api", "model", "render"},
    "pages": {"base", "api", "model", "render", "widgets"},
    "app": {"base", "api", "model", "render", "widgets", "pages"},
}

FORBIDDEN_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|misc)(\.|_|$)")


def python_files() -> list[Path]:
    return [
        path
        for folder in (*OURS, "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def imports_of(path: Path) -> set[str]:
    """Every module a file imports, at any depth, type-checking blocks left out."""
    found: set[str] = set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                walk(child)
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(ast.parse(path.read_text()))
    return found


def is_below(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def rule_for(module: str) -> str:
    return max((p for p in ALLOWED if is_below(module, p)), key=len)


@pytest.mark.parametrize("path", python_files(), ids=module_name)
def test_a_module_imports_only_what_its_layer_may(path):
    module = module_name(path)
    prefix = rule_for(module)
    allowed = ALLOWED[prefix]
    if allowed is ANYTHING:
        return
    for imported in imports_of(path):
        top = imported.partition(".")[0]
        if top in sys.stdlib_module_names or is_below(imported, prefix):
            continue
        assert any(is_below(imported, a) for a in allowed), (
            f"{module} may not import {imported}: {prefix} is allowed"
            f" {sorted(allowed) or 'nothing'}"
        )


def test_the_collector_does_not_know_its_command_line_or_the_plugin():
    for path in python_files():
        module = module_name(path)
        if is_below(module, "memboard.collector") and not is_below(
            module, "memboard.collector.cli"
        ):
            for imported in imports_of(path):
                assert not is_below(imported, "memboard.tb_plugin"), (
                    f"{module} -> {imported}"
                )
                assert not is_below(imported, "memboard.collector.cli"), (
                    f"{module}: cli"
                )


def test_caches_and_temporary_folders_are_made_in_one_place():
    own = re.compile(r"mkdtemp|TemporaryDirectory|XDG_CACHE_HOME")
    found = {module_name(p) for p in python_files() if own.search(p.read_text())}
    assert found == {"memboard.collector.process.private_folder"}


def test_pythons_are_started_where_nothing_of_the_current_folder_is_imported():
    own = re.compile(r"\[\s*sys\.executable|get_context\(|\bforkserver\.ensure_running")
    found = {module_name(p) for p in python_files() if own.search(p.read_text())}
    assert found == {
        # `python -I`
        "memboard.collector.process.bound_process",
        "memboard.tb_plugin.worker.process",
        # `variables_of_children`
        "memboard.collector.simulate.run",
    }


def test_what_files_contain_is_cached_in_one_memory():
    own = re.compile(r"\blru_cache|\bOrderedDict\(\)|popitem\(")
    found = {module_name(p) for p in python_files() if own.search(p.read_text())}
    assert {one for one in found if is_below(one, "memboard.tb_plugin")} == {
        "memboard.tb_plugin.cache",
        # What is under way or failed, and names, schemas and notes that were parsed.
        "memboard.tb_plugin.jobs.job",
        "memboard.tb_plugin.formats.recording.frames.headers",
        "memboard.tb_plugin.formats.snapshots.files.names",
        "memboard.tb_plugin.index.notes",
    }


def test_no_module_is_a_drawer_for_everything():
    sources = [*python_files(), *(ROOT / "frontend" / "src").rglob("*.ts*")]
    assert sources
    bad = [str(p.relative_to(ROOT)) for p in sources if FORBIDDEN_NAMES.search(p.name)]
    assert bad == []


NO_THINGS = re.compile(
    r"_?(Around|Asked|Became|Begun|Called|Came|Compared|Counted|Derived|Dropped|Encoded"
    r"|Folded|Forked|Found|Framed|Given|Held|Imported|Indexed|Inflated|Joined|Judged|Kept"
    r"|Known|Later|Listed|Looks|Lost|Made|Matched|Merged|Nested|Opened|Others|Packed|Passed"
    r"|Placed|Planned|Recorded|Refused|Rendered|Replayed|Reserved|Retained|Said|Saved|Seen"
    r"|Shared|Shown|Stopped|Taken|Told|Walked|Wanted|Wish)"
)
"""Participles and pronouns: a class is a thing of the field, and says which."""


def test_a_class_is_named_as_a_thing():
    bad = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and NO_THINGS.fullmatch(node.name)
    ]
    assert bad == []


def test_a_variable_says_what_it_contains():
    empty = empty_names(modules().values())
    assert {area: num for area, num in empty.items() if num} == {}


def test_no_source_file_outgrows_a_reader():
    files = [
        *python_files(),
        *(ROOT / "frontend" / "src").rglob("*.ts*"),
        *(ROOT / "tests").rglob("*.py"),
    ]
    long = {
        str(p.relative_to(ROOT)): lines
        for p in files
        if (lines := p.read_text().count("\n")) > 600 and ".gen" not in p.suffixes
    }
    assert long == {}


def test_nothing_imports_in_a_circle_or_upwards():
    assert house.faults() == []


def test_the_top_level_holds_what_the_user_fixed_and_nothing_else():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    top = {name.partition("/")[0] for name in tracked}
    fixed = {"pyproject.toml", "README.md", "LICENSE"}
    fixed |= {"collector", "tb_plugin", "frontend", "tests", "examples"}
    assert {name for name in top if not name.startswith(".")} == fixed


def test_frontend_layers_import_leftwards_only_and_pages_not_each_other():
    source = ROOT / "frontend" / "src"
    pattern = re.compile(r"""(?:from|import)\s*\(?\s*['"](\.{1,2}/[^'"]+)['"]""")
    listed = (source / "app" / "pages.ts").read_text()
    named = re.findall(r'import\("../pages/([\w/]+)/\w+"\)', listed)
    pages = {f"pages/{name}" for name in named}
    checked = 0
    for path in source.rglob("*.ts*"):
        parts = path.relative_to(source).parts
        if len(parts) < 2 or ".test." in path.name:
            continue
        layer = parts[0]
        for target in pattern.findall(path.read_text()):
            aim = (path.parent / target).resolve().relative_to(source).parts
            checked += 1
            if len(aim) < 2 or aim[0] == layer:
                # All that is no page's own is shared by the pages.
                theirs = next(
                    (p for p in pages if "/".join(aim).startswith(f"{p}/")), ""
                )
                own = "/".join(parts).startswith(f"{theirs}/")
                assert not theirs or own, f"{path} imports another page"
                continue
            assert aim[0] in FRONTEND[layer], f"{path} may not import {'/'.join(aim)}"
    assert pages
    assert checked > 20


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after `statement`."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(json.loads(output.splitlines()[-1]))


def test_importing_the_collector_loads_nothing_heavy():
    loaded = modules_after("import memboard as mb")
    heavy = {"torch", "numpy", "tensorboard", "psutil", "yaml", "google.protobuf"}
    assert loaded & heavy == set()
    assert "memboard.collector" in loaded


def test_the_plugins_entry_point_loads_only_tensorboards_base_plugin():
    loaded = modules_after("import memboard.tb_plugin.loader")
    heavy = {"torch", "numpy", "psutil", "werkzeug", "google.protobuf", "msgspec"}
    assert loaded & heavy == set()
    assert "tensorboard.plugins.base_plugin" in loaded


def test_loading_the_plugin_leaves_what_reads_data_for_later():
    loaded = modules_after("import memboard.tb_plugin.plugin")
    ours = {m for m in loaded if m.startswith("memboard")}
    assert ours == {
        "memboard",
        "memboard.collector",
        "memboard.tb_plugin",
        "memboard.tb_plugin.index",
        "memboard.tb_plugin.index.logdirs",
        "memboard.tb_plugin.plugin",
        "memboard.tb_plugin.server",
        "memboard.tb_plugin.server.access",
        "memboard.tb_plugin.server.assets",
        "memboard.tb_plugin.contract",
        "memboard.tb_plugin.contract.errors",
        "memboard.tb_plugin.server.respond",
        "memboard.tb_plugin.server.routes",
    }
    assert loaded & {"numpy", "msgspec", "google_crc32c", "google.protobuf"} == set()


def test_the_list_of_runs_leaves_histories_errors_and_traces_for_later():
    """Every first page waits for these imports."""
    loaded = modules_after(
        "import memboard.tb_plugin.server.state;"
        " from memboard.tb_plugin.server.routes import declared;"
        " declared('runs')"
    )
    later = re.compile(
        r"memboard\.tb_plugin\.(analysis\.(allocator|categories|oom|snapshots|trace)\b"
        r"|jobs\.(job|histories)\b|worker\.(importer|process)\b|facts\.findings\b)"
    )
    assert {module for module in loaded if later.match(module)} == set()
    assert "memboard.tb_plugin.server.state" in loaded


def test_the_loaded_plugin_never_pulls_torch_or_psutil():
    loaded = modules_after(
        "import pkgutil; from importlib import import_module;"
        " import memboard.tb_plugin.plugin, memboard.tb_plugin.server.state;"
        " import memboard.tb_plugin.pages as views;"
        " [import_module(one.name)"
        " for one in pkgutil.walk_packages(views.__path__, 'memboard.tb_plugin.pages.')]"
    )
    assert loaded & {"torch", "psutil", "memboard.collector.sources"} == set()


def test_pages_shape_what_they_are_given():
    """What is computed is a fact or an analysis, which a report or a comparison reads too."""
    pages = ROOT / "tb_plugin" / "pages"
    importing = [
        path.relative_to(pages).as_posix()
        for path in sorted(pages.rglob("*.py"))
        if "numpy" in {name.partition(".")[0] for name in imports_of(path)}
    ]
    assert importing == []
