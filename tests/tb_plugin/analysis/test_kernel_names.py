"""Public names of kernels against what is true of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from memboard.tb_plugin.analysis.kernel_names.kinds import (
    RULES,
    UNKNOWN,
    KernelCategory,
    kernel_kind,
    kernel_rules,
)


class PublicName(NamedTuple):
    category: str
    cores: str
    """yes, no, or depends: on what no name says."""
    kernel_name: str


def public_names():
    path = Path(__file__).with_name("kernel_names") / "truth.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [PublicName(*line.split("\t")) for line in lines if line[:1] != "#"]


NAMES = public_names()


def test_there_are_enough_names_and_none_twice():
    kernel_names = [public.kernel_name for public in NAMES]
    assert len(set(kernel_names)) == len(kernel_names) >= 300
    assert {public.cores for public in NAMES} == {"yes", "no", "depends"}


def test_no_name_is_judged_wrongly_and_nearly_all_are_judged():
    decided = [public for public in NAMES if public.cores != "depends"]
    judged = {
        public.kernel_name: kernel_kind(public.kernel_name).matrix_cores
        for public in decided
    }
    wrong = [
        public.kernel_name
        for public in decided
        if judged[public.kernel_name] not in (public.cores == "yes", None)
    ]
    assert wrong == []
    num_unknown = sum(is_used is None for is_used in judged.values())
    assert num_unknown <= 0.1 * len(decided)


def test_what_depends_on_data_types_is_not_known():
    for public in NAMES:
        if public.cores == "depends":
            assert kernel_kind(public.kernel_name).matrix_cores is None, public


def test_on_an_instinct_products_of_triton_use_matrix_cores():
    for kernel_name in ("attn_fwd", "triton_tem_fused_mm_12", "fused_moe_kernel"):
        assert kernel_kind(kernel_name).matrix_cores is None
        assert kernel_kind(kernel_name, on_cdna=True).matrix_cores is True


def test_categories_and_communication():
    for public in NAMES:
        kind = kernel_kind(public.kernel_name)
        assert kind.category == public.category, public
        is_communication = public.category == "communication"
        assert kind.communication == ("yes" if is_communication else "no"), public


@pytest.mark.parametrize(
    "kernel_name",
    [
        "my_ring_reduce_kernel",
        "void custom::gather_from_peers<float>(float**, int)",
        "scatter_to_peer",
        "p2p_exchange_tokens",
        "void two_shot_reduce_kernel<half>",
        "internode_combine_tokens",
        "RingReduceKernel",
        "void custom::TwoShotReduce<half>(half**)",
        "push_to_ranks",
    ],
)
def test_what_seems_to_reduce_or_move_across_ranks_is_asked_about(kernel_name):
    assert kernel_kind(kernel_name).communication == "asked"


@pytest.mark.parametrize(
    "kernel_name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void at::native::_scatter_gather_elementwise_kernel<128, 4>",
        "void at::native::vectorized_gather_kernel<16, long>",
        "triton_red_fused_sum_string_0",
        "reduce_segments",
        "scatter_kernel",
        "_fwd_kernel_ep_gather",
        "gather_weighted_rows",
        "compute_rank_indices",
        "low_rank_gather_kernel",
        "string_reduce",
        "output_of_peer",
    ],
)
def test_what_reduces_or_moves_within_a_device_is_not_asked_about(kernel_name):
    assert kernel_kind(kernel_name).communication == "no"


def test_nothing_is_said_of_an_unknown_name():
    assert kernel_kind("kernel1") == UNKNOWN
    assert kernel_kind("") == UNKNOWN


def test_the_table_is_well_formed():
    categories = {*get_args(KernelCategory), "communication?"}
    rows = [
        line.split("\t")
        for line in RULES.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert len(rows) == len(kernel_rules())
    for keywords, pattern, category, cores in rows:
        assert keywords == keywords.lower()
        assert all(keywords.split("|"))
        # Names are looked at in small letters.
        assert not re.search(r"(?<!\\)[A-Z]", pattern)
        assert category in categories
        assert cores in ("yes", "no", "cdna", "?")


def test_a_name_is_judged_by_its_first_letters():
    for word in (
        "gemm_",
        "fmha_cutlassF_",
        "xmma_",
        "all_reduce",
        "cijk_",
        "triton_red_",
    ):
        kind = kernel_kind(word * 200_000)
        assert kind == kernel_kind(word * 2_000)
