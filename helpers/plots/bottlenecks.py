"""Three bars, one bucket; and the public case whose time was mostly neither launch nor memory."""

from __future__ import annotations

from typing import Any

from helpers.facts import fact
from helpers.plots import style
from helpers.plots.bars import _PARTS as LEDGER  # the same look for the same bucket everywhere
from helpers.plots.style import GREY, INK, PALE, PAPER, SMALL, TEXT
from helpers.roofline import Roof, Times, datasheet, verdict

CLOSE = 0.7
"""Share of the longest bar from which on the second one makes the verdict a tie."""

_BARS = (
    ("compute", "compute: FLOPs / rate", LEDGER["compute"]),
    ("memory", "memory: bytes / bandwidth", LEDGER["memory"]),
    ("overhead", "host: kernels × cost", LEDGER["host"]),
)


def bucket_times(
    flops: float, moved: float, kernels: int, roof: Roof, dtype: str, host_per_op: float
) -> Times:
    """Return the times of ``kernels`` equal kernels that share FLOPs and bytes, in seconds."""
    compute, memory = flops / roof.rates[dtype], moved / roof.bandwidth
    wins = compute > memory
    both, host = max(compute, memory), kernels * host_per_op
    return Times(compute, memory, host, max(both, host), both, both * wins, both * (not wins), roof)


def draw_buckets(
    ax: Any,
    flops: float,
    moved: float,
    kernels: int,
    roof: Roof | None = None,
    *,
    host_per_op: float | None = None,
    device: Any = None,
) -> Any:
    """Draw what compute, memory and host would each need alone, and name the longest.

    ``flops`` of matrix products, ``moved`` bytes, ``kernels``: of one program, all kernels alike.
    ``roof``: default the datasheet peaks of ``device`` (a Device). ``host_per_op``: seconds for
    each kernel; default the roof's own, else the 32 us of the facts.
    """
    if roof is None:
        roof = datasheet(device)
    dtype = "fp16" if "fp16" in roof.rates else "fp32"
    each = host_per_op or roof.host_per_op or fact("host.operation").value
    times = bucket_times(flops, moved, kernels, roof, dtype, each)
    values = {"compute": times.compute, "memory": times.memory, "overhead": times.host}
    longest, second = sorted(values.values(), reverse=True)[:2]
    found = verdict(times.program, times).bucket
    ax = style.axes(ax, 3.3)
    size, unit = style.scale(longest, "s")
    for row, (key, _, look) in enumerate(_BARS):
        value, wins = values[key], key == found
        ax.barh(row, value / size, height=0.6, edgecolor=INK, linewidth=2.4 if wins else 0.9,
                gid=key, **look)  # fmt: skip
        text = style.quantity(value, "s") + ("  sets the time" if wins else "")
        ax.text(value / size + 0.012 * longest / size, row, text, va="center", fontsize=SMALL,
                color=INK, fontweight="bold" if wins else "normal")  # fmt: skip
    ax.set_yticks(range(3), [label for _, label, _ in _BARS], fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(2.55, -0.55)
    ax.set_xlim(0, 1.6 * longest / size)
    ax.set_xlabel(f"time alone ({unit})", fontsize=TEXT, color=INK)
    tie = second > CLOSE * longest
    headline = f"{found}-bound" + (", but close: measure" if tie else "")
    plural = "s" * (kernels != 1)
    given = (
        f"{style.quantity(flops, 'FLOP')} in {dtype}, {style.quantity(moved, 'B')}, "
        f"{kernels:,} kernel{plural}"
    )
    cost = f"{style.quantity(each, 's')} of host per kernel"
    line = style.title(ax, headline[0].upper() + headline[1:], roof.device, "calculated",
                       f"{roof.label} · {given} · {cost}", 60)  # fmt: skip
    bars = ", ".join(f"{k} {style.quantity(v, 's')}" for k, v in values.items())
    style.describe(ax, f"{headline} ({line}). Times alone: {bars}.")
    return ax


def draw_public_case(ax: Any = None) -> Any:
    """Draw one decode step of gpt-fast, eager and compiled, beside what bytes and launches explain.

    From the facts: tokens per second, operations, bytes and the bandwidth of an A100 80 GB SXM.
    """
    eager = 1 / fact("result.gpt_fast.eager").value
    graphs = (
        1 / fact("result.gpt_fast.compiled").value,
        1 / fact("result.gpt_fast_readme.fp16").value,
    )
    operations = fact("result.gpt_fast.operations").value
    moved = fact("model.llama2_7b.decode_weights").value
    memory = moved / fact("device.a100_80_sxm.bandwidth").value
    launches = operations * 5e-6, operations * 10e-6
    ms = 1e3
    rows = (
        ("one step, eager", eager, eager, dict(facecolor=PALE, hatch=""), "published"),
        ("the same, compiled,\nwith CUDA graphs", *graphs, dict(facecolor=PALE, hatch=""),
         "published"),
        (f"moving {style.quantity(moved, 'B')}", memory, memory, LEDGER["memory"],
         "datasheet"),
        (f"{operations:,} launches\nof 5 to 10 µs", *launches, LEDGER["host"],
         "calculated"),
    )  # fmt: skip
    ax = style.axes(ax, 3.5)
    said = []
    for row, (label, low, high, look, how) in enumerate(rows):
        ax.barh(row, low * ms, height=0.58, edgecolor=INK, linewidth=1.0, **look)
        if high > low:
            ax.barh(row, (high - low) * ms, left=low * ms, height=0.58, facecolor=PAPER,
                    edgecolor=INK, hatch=look["hatch"], linewidth=1.0, linestyle="--")  # fmt: skip
        text = f"{low * ms:.1f} ms" if high == low else f"{low * ms:.1f} to {high * ms:.1f} ms"
        ax.text(high * ms + 0.5, row, f"{text} ({how})", va="center", fontsize=SMALL, color=INK)
        said.append(f"{label.replace(chr(10), ' ')}: {text} ({how})")
    ax.annotate("", (launches[1] * ms, 3.55), xytext=(eager * ms, 3.55),
                arrowprops=dict(arrowstyle="<->", color=GREY, linewidth=1.2))  # fmt: skip
    ax.text((launches[1] + eager) * ms / 2, 3.62, "and this?", ha="center", va="top", fontsize=TEXT,
            fontweight="bold", color=INK)  # fmt: skip
    ax.plot([eager * ms] * 2, [0.29, 3.6], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.set_yticks(range(len(rows)), [label for label, *_ in rows], fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(4.1, -0.5)
    ax.set_xlim(0, eager * ms * 1.42)
    ax.set_xlabel("time of one step (ms)", fontsize=TEXT, color=INK)
    line = style.title(ax, "39 ms: what for?", "A100 80 GB SXM, 330 W limit", "calculated",
                       "from published tokens/s; 32 layers, batch 1", 62)  # fmt: skip
    style.describe(ax, f"One step of a 32-layer model ({line}). {'; '.join(said)}. An arrow "
                       "from the launches to the eager step asks: and this?")  # fmt: skip
    return ax
