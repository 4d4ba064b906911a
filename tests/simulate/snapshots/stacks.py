"""Stacks of a sharded transformer training, as torch would capture them.

Made from the layers such a stack has: the allocator's own C++ frames, the operator, the
interpreter, the model's modules with torch's call frames between them, and the loop. A
backward runs in a thread of the autograd engine, where no Python is, unless it is a hook
of the sharding. Layers share their stacks, because they share their lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tests.simulate.history.sites import Frame, Site

if TYPE_CHECKING:
    from tests.simulate.history.sites import Sites

Stacks: TypeAlias = Literal["all", "python"]
"""As given to `_record_memory_history(stacks=...)`."""

_PACKAGES: Final = "/opt/venv/lib/python3.11/site-packages/"
_MODEL: Final = "/workspace/llm/model.py"
_TRAIN: Final = "/workspace/llm/train.py"
_DATA: Final = "/workspace/llm/data.py"
_CACHE: Final = "/workspace/llm/feature_cache.py"
_EVALUATE: Final = "/workspace/llm/evaluate.py"
_FSDP: Final = _PACKAGES + "torch/distributed/fsdp/_fully_shard/"

_ALLOCATOR: Final = "c10::cuda::CUDACachingAllocator::Native::"

_LOOP: Final = (
    Frame("main", _TRAIN, 171),
    Frame("<module>", _TRAIN, 190),
)
_STEP: Final = (Frame("train_step", _TRAIN, 118), *_LOOP)
_LOSS: Final = (Frame("train_step", _TRAIN, 121), *_LOOP)
_CALL: Final = (
    Frame("_call_impl", _PACKAGES + "torch/nn/modules/module.py", 1790),
    Frame("_wrapped_call_impl", _PACKAGES + "torch/nn/modules/module.py", 1779),
)
_TRANSFORMER: Final = (Frame("forward", _MODEL, 262), *_CALL, *_STEP)
_BLOCK_ATTENTION: Final = (Frame("forward", _MODEL, 214), *_CALL, *_TRANSFORMER)
_BLOCK_FEED_FORWARD: Final = (Frame("forward", _MODEL, 215), *_CALL, *_TRANSFORMER)
_OPTIMIZER: Final = (
    Frame("wrapper", _PACKAGES + "torch/optim/optimizer.py", 526),
    Frame("train_step", _TRAIN, 131),
    *_LOOP,
)

# Operator and Python frames of each site in the forward, the loop and the optimizer.
_FORWARD: Final[dict[str, tuple[str, tuple[Frame, ...]]]] = {
    "parameter": ("empty", (Frame("build_model", _MODEL, 291), *_LOOP)),
    "batch": ("_to_copy", (Frame("to_device", _DATA, 74), *_STEP)),
    "embedding": ("embedding", (Frame("forward", _MODEL, 255), *_CALL, *_STEP)),
    "attention norm": (
        "_fused_rms_norm",
        (Frame("forward", _MODEL, 61), *_CALL, *_BLOCK_ATTENTION),
    ),
    "queries": ("mm", (Frame("forward", _MODEL, 128), *_CALL, *_BLOCK_ATTENTION)),
    "attention": (
        "_scaled_dot_product_flash_attention",
        (Frame("forward", _MODEL, 141), *_CALL, *_BLOCK_ATTENTION),
    ),
    "scores": (
        "bmm",
        (Frame("attention_scores", _MODEL, 108), *_CALL, *_BLOCK_ATTENTION),
    ),
    "residual": ("add", _BLOCK_ATTENTION),
    "feed forward norm": (
        "_fused_rms_norm",
        (Frame("forward", _MODEL, 61), *_CALL, *_BLOCK_FEED_FORWARD),
    ),
    "gate": ("mm", (Frame("forward", _MODEL, 177), *_CALL, *_BLOCK_FEED_FORWARD)),
    "up": ("mm", (Frame("forward", _MODEL, 178), *_CALL, *_BLOCK_FEED_FORWARD)),
    "product": ("mul", (Frame("forward", _MODEL, 179), *_CALL, *_BLOCK_FEED_FORWARD)),
    "cast": ("_to_copy", (Frame("forward", _MODEL, 176), *_CALL, *_BLOCK_FEED_FORWARD)),
    "logits": ("mm", (Frame("forward", _MODEL, 268), *_CALL, *_STEP)),
    "wide logits": ("_to_copy", (Frame("loss_of", _TRAIN, 96), *_LOSS)),
    "loss": ("nll_loss_forward", (Frame("loss_of", _TRAIN, 97), *_LOSS)),
    "moments": (
        "zeros_like",
        (
            Frame("_init_group", _PACKAGES + "torch/optim/adamw.py", 158),
            Frame("step", _PACKAGES + "torch/optim/adamw.py", 231),
            *_OPTIMIZER,
        ),
    ),
    "update": (
        "_foreach_sqrt",
        (
            Frame("_multi_tensor_adam", _PACKAGES + "torch/optim/adam.py", 684),
            Frame("step", _PACKAGES + "torch/optim/adamw.py", 243),
            *_OPTIMIZER,
        ),
    ),
    "zero grad": (
        "detach",
        (
            Frame("zero_grad", _PACKAGES + "torch/optim/optimizer.py", 1031),
            Frame("train_step", _TRAIN, 114),
            *_LOOP,
        ),
    ),
    "gather": (
        "empty",
        (
            Frame("foreach_all_gather", _FSDP + "_fsdp_collectives.py", 181),
            Frame("unshard", _FSDP + "_fsdp_param_group.py", 312),
            Frame("_pre_forward", _FSDP + "_fsdp_state.py", 241),
            *_CALL,
            *_TRANSFORMER,
        ),
    ),
    "kept outputs": (
        "clone",
        (Frame("append", _EVALUATE, 52), Frame("log_outputs", _TRAIN, 152), *_STEP),
    ),
    "feature cache": (
        "_to_copy",
        (Frame("extend", _CACHE, 88), Frame("prefill", _CACHE, 121), *_STEP),
    ),
    "prefill": ("mm", (Frame("prefill", _CACHE, 117), *_STEP)),
    "prefetch": ("empty", (Frame("prefetch", _DATA, 133), *_STEP)),
    "prefetch index": ("empty", (Frame("prefetch", _DATA, 136), *_STEP)),
    "graph": ("mm", (Frame("capture_decode", _EVALUATE, 31), *_LOOP)),
    "graph output": ("empty", (Frame("capture_decode", _EVALUATE, 33), *_LOOP)),
    "distances": ("cdist", (Frame("retrieval_scores", _EVALUATE, 78), *_STEP)),
    "one hot": ("one_hot", (Frame("label_smoothing", _TRAIN, 89), *_LOSS)),
    "noise": ("arange", (Frame("make_mask", _MODEL, 94), *_CALL, *_TRANSFORMER)),
}

# Node of the graph that each site of the backward belongs to.
_BACKWARD: Final = {
    "gradient": "MmBackward0",
    "activation gradient": "MulBackward0",
    "attention gradient": "ScaledDotProductFlashAttentionBackward0",
    "norm gradient": "FusedRmsNormBackward0",
    "logits gradient": "LogSoftmaxBackward0",
    "accumulate": "AccumulateGrad",
}

# Sharding hooks: they run in the engine's thread, in Python.
_HOOKS: Final = {
    "backward gather": (
        Frame("foreach_all_gather", _FSDP + "_fsdp_collectives.py", 181),
        Frame("unshard", _FSDP + "_fsdp_param_group.py", 312),
        Frame("pre_backward", _FSDP + "_fsdp_param_group.py", 441),
    ),
    "reduce": (
        Frame("foreach_reduce", _FSDP + "_fsdp_collectives.py", 452),
        Frame("post_backward", _FSDP + "_fsdp_param_group.py", 508),
        Frame("backward", _FSDP + "_fsdp_param_group.py", 862),
        Frame("apply", _PACKAGES + "torch/autograd/function.py", 311),
    ),
}


class TrainingSites(dict[str, int]):
    """Numbers of the training's sites by name, made when first asked for."""

    def __init__(self, sites: Sites, stacks: Stacks, user_metadata: str = "") -> None:
        super().__init__()
        self._sites = sites
        self._stacks = stacks
        self._user_metadata = user_metadata

    def __missing__(self, name: str) -> int:
        """Make the site of `name`.

        Raises:
            KeyError: the training has no such site.
        """
        site = Site(stack_of(name, self._stacks), self._user_metadata)
        number = self[name] = self._sites.number(site)
        return number


def stack_of(name: str, stacks: Stacks) -> tuple[Frame, ...]:
    """The frames of a site, innermost first.

    Raises:
        KeyError: the training has no such site.
    """
    if name in _FORWARD:
        operator, python = _FORWARD[name]
        return (
            (*_operator(operator), *_interpreted(python)) if stacks == "all" else python
        )
    python = _HOOKS.get(name, ())
    if name not in _BACKWARD and not python:
        raise KeyError(name)
    if stacks == "python":
        return python
    operator = "empty" if python else "mm"
    node = _BACKWARD.get(name, "RegisterPostBackwardFunctionBackward")
    return (*_operator(operator), *_interpreted(python), *_engine(node))


def site_names() -> tuple[str, ...]:
    """All that the training has."""
    return (*_FORWARD, *_BACKWARD, *_HOOKS)


def _operator(name: str) -> tuple[Frame, ...]:
    native = "CUDACachingAllocator.cpp"
    return (
        Frame("torch::unwind::unwind()", "??", 0),
        Frame("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
        Frame(
            "torch::cuda::(anonymous namespace)::gather_with_cpp()",
            "memory_snapshot.cpp",
            0,
        ),
        Frame(
            _ALLOCATOR + "DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)",
            native,
            0,
        ),
        Frame(
            _ALLOCATOR
            + "NativeCachingAllocator::malloc(void**, signed char, unsigned long,"
            " CUstream_st*)",
            "",
            0,
        ),
        Frame(_ALLOCATOR + "NativeCachingAllocator::allocate(unsigned long)", "", 0),
        Frame("at::detail::empty_cuda(c10::ArrayRef<long>, ...)", "??", 0),
        Frame(
            f"at::(anonymous namespace)::wrapper_CUDA__{name}(at::Tensor const&, ...)",
            "RegisterCUDA_0.cpp",
            0,
        ),
        Frame(f"at::_ops::{name}::redispatch(c10::DispatchKeySet, ...)", "??", 0),
        Frame(f"at::_ops::{name}::call(at::Tensor const&, ...)", "??", 0),
    )


def _interpreted(python: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Python frames with the interpreter's own behind each."""
    evaluate = Frame("_PyEval_EvalFrameDefault", "ceval.c", 4298)
    call = Frame("_PyObject_Call_Prepend", "call.c", 482)
    return tuple(
        frame
        for own in python
        for frame in ((own, evaluate, call) if own in _CALL else (own, evaluate))
    )


def _engine(node: str) -> tuple[Frame, ...]:
    engine = "torch::autograd::Engine::"
    return (
        Frame(
            f"torch::autograd::generated::{node}::apply(std::vector<at::Tensor>&&)",
            "??",
            0,
        ),
        Frame("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "", 0),
        Frame(engine + "evaluate_function(std::shared_ptr<GraphTask>&, ...)", "??", 0),
        Frame(engine + "thread_main(std::shared_ptr<GraphTask> const&)", "??", 0),
        Frame(engine + "thread_init(int, std::shared_ptr<ReadyQueue>, bool)", "??", 0),
        Frame("execute_native_thread_routine", "thread.cc", 104),
        Frame("start_thread", "pthread_create.c", 442),
        Frame("clone", "clone.S", 100),
    )
