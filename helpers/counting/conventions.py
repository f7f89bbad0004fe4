"""Private tables of helpers.counting: what an ATen operation is and how many FLOPs it asks for.

FLOP conventions (a convention, not physics; the instruction cost of a function is another quantity
and travels as `Op.functions`):

* matrix products, convolutions, attention: the formulas of torch.utils.flop_counter, two FLOPs per
  multiply-add, bias and causal mask not discounted; our own entries use the same rule;
* pointwise: one FLOP per output element and function, comparisons and selections included, so
  cos counts as one; copies, fills, gathers and random numbers count as none;
* reductions: one FLOP per input element; the exceptions are in REDUCTION_FLOPS.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# scalar_tensor: a Python number on its way into an operation, on the host.
ALLOCATIONS = _names(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
    "_efficientzerotensor scalar_tensor"
)
# No kernel and no bytes: allocations, aliases that the schema does not call views, questions about
# a tensor's shape or backend.
NO_KERNEL = ALLOCATIONS | _names(
    "resize_ resize_as_ set_ _unsafe_view _reshape_alias lift lift_fresh alias detach detach_ "
    "requires_grad_ _fused_sdp_choice size stride numel dim device storage_offset layout "
    "is_contiguous is_strides_like_format is_non_overlapping_and_dense is_same_size is_pinned "
    "sym_size sym_stride sym_numel sym_storage_offset sym_is_contiguous retain_grad"
)
# These may alias or copy: the storage of the result decides.
MAYBE_VIEW = _names("reshape reshape_as contiguous to flatten ravel _to_copy view_as")
COPIES = _names(
    "copy copy_ _to_copy _copy_from clone contiguous reshape flatten to cat concat stack repeat "
    "roll flip rot90 constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad2d tril "
    "triu tril_ triu_ repeat_interleave _local_scalar_dense slice_scatter select_scatter "
    "slice_backward select_backward as_strided_copy expand_copy view_copy permute_copy im2col "
    "col2im pixel_shuffle pixel_unshuffle channel_shuffle unsafe_split unsafe_chunk "
    "split_with_sizes_copy masked_select nonzero _pin_memory"
)
FILLS = _names(
    "zero zero_ zeros zeros_like new_zeros fill fill_ full full_like new_full ones ones_like "
    "new_ones eye arange linspace logspace tril_indices triu_indices"
)
RANDOM = _names(
    "rand rand_like randn randn_like randint randint_like randperm uniform uniform_ normal normal_ "
    "bernoulli bernoulli_ random random_ exponential exponential_ geometric_ cauchy_ log_normal_ "
    "multinomial native_dropout poisson"
)
# Arguments named in these that are tensors give shape and dtype only.
LIKE = _names(
    "zeros_like ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full "
    "new_empty new_empty_strided empty_like"
)
# In place, and the old values are not looked at.
WRITE_ONLY = _names(
    "zero_ fill_ copy_ uniform_ normal_ bernoulli_ random_ exponential_ geometric_ cauchy_ "
    "log_normal_"
)
# The first argument is a table of which only the asked-for elements are read.
GATHERS = _names(
    "embedding index _unsafe_index index_select gather take take_along_dim _embedding_bag "
    "_embedding_bag_forward_only nll_loss_forward nll_loss2d_forward"
)
# The first argument is written only where the index points; True: the old value is read as well.
SCATTERS = {
    "index_put_": False, "_index_put_impl_": False, "_unsafe_index_put": False,
    "index_copy_": False, "index_fill_": False, "scatter_": False, "put_": False,
    "index_add_": True, "scatter_add_": True, "scatter_reduce_": True, "index_reduce_": True,
}  # fmt: skip
# Gathers and scatters backwards: no table is read, the whole result is written.
INDEXED = _names("embedding_dense_backward nll_loss_backward nll_loss2d_backward")
# Pointwise, though torch does not tag them so.
POINTWISE = _names(
    "hardswish hardswish_backward polar glu glu_backward native_dropout_backward _prelu_kernel "
    "mse_loss_backward smooth_l1_loss_backward huber_loss_backward _prelu_kernel_backward "
    "binary_cross_entropy_with_logits"
)
REDUCTION_FLOPS = {
    # one pass over the input
    **dict.fromkeys(
        _names(
            "sum nansum mean nanmean prod amax amin max min argmax argmin any all count_nonzero "
            "cumsum cumprod cummax cummin cumsum_ trace equal sum_to_size bincount "
            "max_pool2d_with_indices_backward avg_pool2d_backward _adaptive_avg_pool2d_backward"
        ),
        1,
    ),
    "aminmax": 2,
    # square and add
    "norm": 2, "linalg_vector_norm": 2, "frobenius_norm": 2, "dist": 3, "mse_loss": 3,
    "l1_loss": 3, "smooth_l1_loss": 4, "huber_loss": 4, "binary_cross_entropy": 6, "kl_div": 4,
    # mean; subtract, square, add
    "var": 4, "std": 4, "var_mean": 4, "std_mean": 4,
    # maximum, subtract, exp, add, divide (or subtract the logarithm)
    "logsumexp": 4, "logcumsumexp": 4, "_softmax": 5, "_safe_softmax": 5, "_log_softmax": 5,
    "softmax": 5, "log_softmax": 5, "_softmax_backward_data": 4, "_log_softmax_backward_data": 4,
    # mean, variance, normalise; weight and bias add one each where given (_norm_flops)
    "native_layer_norm": 6, "layer_norm": 6, "native_group_norm": 6, "group_norm": 6,
    "native_batch_norm": 6, "_native_batch_norm_legit": 6, "cudnn_batch_norm": 6,
    "_native_batch_norm_legit_no_training": 2, "instance_norm": 6, "batch_norm": 6,
    "_batch_norm_with_update": 6, "_batch_norm_no_update": 2,
    # square, add, multiply
    "rms_norm": 3, "_fused_rms_norm": 3,
    # the backward pass of a normalisation: twice the forward
    "native_layer_norm_backward": 12, "native_batch_norm_backward": 12,
    "native_group_norm_backward": 12, "_fused_rms_norm_backward": 6, "batch_norm_backward": 12,
}  # fmt: skip
NORMS = frozenset(name for name in REDUCTION_FLOPS if "norm" in name and "backward" not in name
                  and name not in ("norm", "linalg_vector_norm", "frobenius_norm"))  # fmt: skip
# One comparison per input element, a lower bound for a sort.
SELECTIONS = _names("topk sort argsort msort kthvalue median mode searchsorted")
POOLS = _names(
    "max_pool2d_with_indices avg_pool2d avg_pool1d avg_pool3d max_pool3d_with_indices "
    "_adaptive_avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d _adaptive_avg_pool3d"
)
# Pointwise operations that evaluate more than the function they are named after.
FUNCTIONS = {
    "addcmul": ("mul", "add"), "addcdiv": ("div", "add"), "lerp": ("sub", "mul", "add"),
    "rsub": ("sub",), "subtract": ("sub",), "multiply": ("mul",), "divide": ("div",),
    "true_divide": ("div",), "square": ("mul",), "rms_norm": ("rsqrt",),
    "_fused_rms_norm": ("rsqrt",), "_softmax": ("exp",), "_safe_softmax": ("exp",),
    "softmax": ("exp",), "_log_softmax": ("exp",), "log_softmax": ("exp",), "logsumexp": ("exp",),
}  # fmt: skip
ATTENTION_FORWARD = _names(
    "scaled_dot_product_attention _scaled_dot_product_attention_math "
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable"
)
# Composite operations that a GPU runs as one kernel: never taken apart when counting.
ONE_KERNEL = frozenset(("scaled_dot_product_attention", "rms_norm", "_fused_rms_norm"))


def attention_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """FLOPs of Q K^T and of the scores times V, from tensors [..., H, L, E], [..., Hkv, S, E]."""
    rows, keys = prod(query.shape[:-1]), key.shape[-2]
    return 2 * rows * keys * (query.shape[-1] + value.shape[-1])


def _attention_backward(_grad: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    # scores again, then one product each for dP, dV, dQ and dK
    rows, keys = prod(query.shape[:-1]), key.shape[-2]
    return 2 * rows * keys * (3 * query.shape[-1] + 2 * value.shape[-1])


def _inner(left: int) -> Callable[..., int]:
    """FLOPs of a product whose left operand is args[left]: 2 x result elements x inner length."""

    def flops(*args: Any, out_val: Any, **_: Any) -> int:
        return 2 * out_val.numel() * args[left].shape[-1]

    return flops


def _addbmm(_self: Any, a: Any, b: Any, **_: Any) -> int:
    return 2 * prod(a.shape) * b.shape[-1]


def _outer(_self: Any, a: Any, b: Any, **_: Any) -> int:
    return 2 * a.numel() * b.numel()


def _recurrent(x: Any, *rest: Any, **_: Any) -> int:
    """Each step of the sequence multiplies by each weight matrix once. x: [T, B, I]."""
    flat = [w for item in rest[:5] for w in (item if isinstance(item, list | tuple) else [item])]
    weights = sum(w.numel() for w in flat if hasattr(w, "numel") and w.dim() == 2)
    return 2 * prod(x.shape[:2]) * weights


# What torch.utils.flop_counter leaves at zero. Called with the operation's own arguments.
OUR_MATMULS: dict[str, Callable[..., int]] = {
    "mv": _inner(0), "addmv": _inner(1), "dot": _inner(0), "vdot": _inner(0),
    "matmul": _inner(0), "linear": _inner(0), "_int_mm": _inner(0),
    "_addmm_activation": _inner(1), "addbmm": _addbmm, "addr": _outer,
    "_weight_int8pack_mm": _inner(0), "_weight_int4pack_mm": _inner(0),
    "mkldnn_rnn_layer": _recurrent, "_cudnn_rnn": _recurrent,
}  # fmt: skip
OUR_ATTENTION: dict[str, Callable[..., int]] = {
    **dict.fromkeys(ATTENTION_FORWARD, attention_flops),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
}
