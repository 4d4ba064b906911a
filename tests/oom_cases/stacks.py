"""Call stacks as torch records them, of scripts in several styles.

Frames stand innermost first. Memory that backward allocates on autograd's own thread has
no Python frame at all, as on a real GPU; with `stacks="all"` it has C++ frames.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

Frame = tuple[str, int, str]
Frames = list[dict[str, Any]]

# Lines of torch's own files by release.
MODULE_LINES = {(2, 6): (1750, 1739), (2, 8): (1784, 1773), (2, 10): (1786, 1775)}
MODULE_LINES[2, 13] = (1789, 1778)

GATHER: tuple[Frame, ...] = (
    ("??", 0, "torch::unwind::unwind()"),
    ("??", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
    ("memory_snapshot.cpp", 0, "torch::cuda::(anonymous namespace)::gather_with_cpp()"),
    (
        "CUDACachingAllocator.cpp",
        0,
        (
            "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc"
            "(signed char, unsigned long, CUstream_st*)"
        ),
    ),
    (
        "",
        0,
        (
            "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate"
            "(unsigned long)"
        ),
    ),
    (
        "EmptyTensor.cpp",
        0,
        (
            "at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>, "
            "c10::Allocator*, c10::DispatchKeySet, c10::ScalarType, "
            "std::optional<c10::MemoryFormat>)"
        ),
    ),
)
CALLED: tuple[Frame, ...] = (
    ("python_torch_functions_2.cpp", 0, "torch::autograd::THPVariable_call(...)"),
    ("", 0, "cfunction_call"),
)
ENGINE: tuple[Frame, ...] = (
    (
        "RegisterCUDA_0.cpp",
        0,
        "at::(anonymous namespace)::wrapper_CUDA_mm(at::Tensor const&, at::Tensor const&)",
    ),
    (
        "??",
        0,
        (
            "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor, "
            "std::allocator<at::Tensor> >&&)"
        ),
    ),
    (
        "??",
        0,
        (
            "torch::autograd::Engine::evaluate_function(std::shared_ptr<"
            "torch::autograd::GraphTask>&, torch::autograd::Node*)"
        ),
    ),
    (
        "??",
        0,
        (
            "torch::autograd::Engine::thread_main(std::shared_ptr<"
            "torch::autograd::GraphTask> const&)"
        ),
    ),
    ("??", 0, "__clone"),
)


@dataclasses.dataclass(frozen=True)
class Style:
    """How a project is laid out: its files, functions and what calls them."""

    name: str
    root: str
    packages: str
    train: tuple[str, str]
    evaluate: tuple[str, str]
    setup: tuple[str, str]
    data: tuple[str, str]
    caller: tuple[tuple[str, str], ...]
    framework: tuple[Frame, ...] = ()


STYLES = (
    Style(
        "plain",
        "/home/mira/tinylm/",
        "/home/mira/tinylm/.venv/lib/python3.12/site-packages/",
        ("train.py", "train_one_epoch"),
        ("evaluate.py", "validate"),
        ("train.py", "build_model"),
        ("data.py", "preload"),
        (("train.py", "main"), ("train.py", "<module>")),
    ),
    Style(
        "trainer",
        "/workspace/sft/",
        "/usr/local/lib/python3.11/dist-packages/",
        ("custom_trainer.py", "compute_loss"),
        ("custom_trainer.py", "evaluation_loop"),
        ("run_sft.py", "load_everything"),
        ("collators.py", "to_device"),
        (("run_sft.py", "main"), ("run_sft.py", "<module>")),
        (
            ("transformers/trainer.py", 4020, "training_step"),
            ("transformers/trainer.py", 2674, "_inner_training_loop"),
            ("transformers/trainer.py", 2325, "train"),
        ),
    ),
    Style(
        "notebook",
        "/tmp/ipykernel_20817/",
        "/opt/conda/lib/python3.10/site-packages/",
        ("2731915526.py", "<module>"),
        ("1120847301.py", "run_eval"),
        ("88120416.py", "<module>"),
        ("3316090775.py", "feed"),
        (),
        (
            ("IPython/core/interactiveshell.py", 3553, "run_code"),
            ("IPython/core/interactiveshell.py", 3473, "run_ast_nodes"),
            ("ipykernel/zmqshell.py", 549, "run_cell"),
            ("ipykernel/kernelapp.py", 739, "start"),
            ("ipykernel_launcher.py", 18, "<module>"),
        ),
    ),
    Style(
        "package",
        "/app/src/northstar/",
        "/opt/venv/lib/python3.11/site-packages/",
        ("engine/loop.py", "_run_batch"),
        ("engine/evaluation.py", "score_split"),
        ("models/factory.py", "create"),
        ("data/feeder.py", "_worker_loop"),
        (("engine/loop.py", "fit"), ("cli.py", "main"), ("__main__.py", "<module>")),
    ),
)

# Where each kind of line stands: which function, and how far below its first line.
SITES = {
    "batch": ("train", 3),
    "forward": ("train", 6),
    "loss": ("train", 8),
    "aux": ("train", 11),
    "keep": ("train", 13),
    "backward": ("train", 17),
    "step": ("train", 21),
    "zero": ("train", 23),
    "eval_forward": ("evaluate", 7),
    "eval_keep": ("evaluate", 11),
    "generate": ("evaluate", 15),
    "move": ("setup", 4),
    "load": ("setup", 9),
    "copy": ("setup", 14),
    "capture": ("setup", 22),
    "prefetch": ("data", 12),
}


class Script:
    """One user's script: the same line of it has the same number everywhere."""

    def __init__(
        self, rng: random.Random, style: Style, version: tuple[int, int], stacks: str
    ) -> None:
        self.style = style
        self.version = version
        self.stacks = stacks
        first = rng.randrange(24, 60)
        self._first = {
            "setup": first,
            "train": first + rng.randrange(40, 120),
            "evaluate": first + rng.randrange(150, 320),
            "data": rng.randrange(15, 90),
        }
        self._caller_line = first + rng.randrange(330, 500)
        self._interned: dict[Frame, dict[str, Any]] = {}

    def at(self, site: str) -> tuple[str, int]:
        """Return the file's name and the line, for what a verdict should name."""
        function, below = SITES[site]
        path = getattr(self.style, function)[0]
        return path.rsplit("/", 1)[-1], self._first[function] + below

    def user(self, site: str) -> tuple[Frame, ...]:
        """Frames of the script from this line outwards."""
        function, below = SITES[site]
        path, name = getattr(self.style, function)
        root = self.style.root
        own: tuple[Frame, ...] = ((root + path, self._first[function] + below, name),)
        if function == "data":
            threading = self.style.packages.split("site-")[0].split("dist-")[0]
            return (
                *own,
                (threading + "threading.py", 1012, "run"),
                (threading + "threading.py", 1075, "_bootstrap_inner"),
                (threading + "threading.py", 1032, "_bootstrap"),
            )
        framework = self.lib(*self.style.framework) if function != "setup" else ()
        if self.style.name == "notebook":
            framework = self.lib(*self.style.framework)
            if function == "evaluate":
                own = (*own, (root + "771640092.py", 3, "<module>"))
        callers = tuple(
            (root + file, self._caller_line + 9 * at, caller)
            for at, (file, caller) in enumerate(self.style.caller)
        )
        return (*own, *framework, *callers)

    def lib(self, *frames: Frame) -> tuple[Frame, ...]:
        """Frames of installed packages, with their whole paths."""
        return tuple((self.style.packages + file, at, fn) for file, at, fn in frames)

    def called(self) -> tuple[Frame, ...]:
        """Return what stands between a module's caller and its forward."""
        inner, outer = MODULE_LINES[self.version]
        file = "torch/nn/modules/module.py"
        return self.lib(
            (file, inner, "_call_impl"), (file, outer, "_wrapped_call_impl")
        )

    def modules(self, *forwards: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """Nested forward functions, the innermost first, called as modules are."""
        made: tuple[Frame, ...] = ()
        for frames in forwards:
            made += frames + self.called()
        return made

    def stack(self, *parts: tuple[Frame, ...]) -> Frames:
        """Make one captured stack."""
        python = tuple(frame for part in parts for frame in part)
        frames = (*GATHER, *CALLED, *python) if self.stacks == "all" else python
        return self._intern(frames)

    def on_autograd_thread(self, *python: tuple[Frame, ...]) -> Frames:
        """Make a stack of memory that backward allocates."""
        own = tuple(frame for part in python for frame in part)
        if self.stacks != "all":
            return self._intern(own)
        return self._intern((*GATHER, *own, *ENGINE))

    def _intern(self, frames: tuple[Frame, ...]) -> Frames:
        made = []
        for frame in frames:
            if frame not in self._interned:
                file, line, name = frame
                entry = {"name": name, "filename": file, "line": line}
                self._interned[frame] = entry
            made.append(self._interned[frame])
        return made

    def optimizer(self, part: str) -> Frames:
        """Stacks inside AdamW: its states ("exp_avg", "exp_avg_sq") or its temporaries."""
        file, method, lines = (
            ("torch/optim/adamw.py", "adamw", (171, 175, 232, 699, 875, 243))
            if self.version == (2, 6)
            else ("torch/optim/adam.py", "adam", (178, 182, 237, 762, 952, 247))
        )
        first, second, call, foreach, dispatch, run = lines
        if part == "temporary":
            inner = (
                (file, foreach, f"_multi_tensor_{method}"),
                (file, dispatch, method),
                ("torch/optim/optimizer.py", 147, "maybe_fallback"),
                (file, run, "step"),
            )
        else:
            at = first if part == "exp_avg" else second
            inner = ((file, at, "_init_group"), (file, call, "step"))
        own = self.lib(
            *inner,
            ("torch/optim/optimizer.py", 79, "_use_grad"),
            ("torch/optim/optimizer.py", 485, "wrapper"),
        )
        return self.stack(own, self.user("step"))
