"""Figures of notebook 06: what decode is, and what a batch does to latency, throughput, memory."""

from __future__ import annotations

from typing import Any

from helpers import inference, roofline
from helpers.devices import get
from helpers.inference import Model
from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, TEXT, VERMILLION

WEIGHTS = {"fp16": 16, "int8": 8, "int4": 4}
"""Bits of a weight; the cache and the arithmetic stay fp16."""

MOST = 1024
ROOF = "datasheet peaks"
PROMPT, ANSWER = ("why", "is", "it", "slow"), ("too", "many", "trips")


def draw_decode_primer(ax: Any = None) -> Any:
    """Draw prefill and two decode steps: tokens in, all weights, token out, the growing cache.

    A drawing of what happens; it holds no measured number.
    """
    ax = style.axes(ax, 4.3)
    ax.axis("off")
    ax.set_xlim(0, 10)
    ax.set_ylim(-1.05, 4.05)
    for x, plain, term in (
        (1.55, "goes in", "rows"),
        (4.25, "moved each time", "all weights"),
        (6.2, "comes out", "one token"),
        (8.5, "kept for later", "KV cache, one entry per token"),
    ):
        ax.text(x, 3.85, plain, ha="center", va="center", fontsize=TEXT, fontweight="bold",
                color=INK)  # fmt: skip
        ax.text(x, 3.55, term, ha="center", va="center", fontsize=SMALL, color=INK)
    passes = [("prefill", PROMPT, 0), *(("decode", (ANSWER[i],), len(PROMPT) + i) for i in (0, 1))]
    for row, (stage, tokens, kept) in enumerate(passes):
        _pass(ax, 2.75 - 1.15 * row, stage, tokens, ANSWER[row], kept)
    ax.text(0, -0.52, "Prefill: many rows share one trip of the weights. Decode: one row per "
            "sequence and pass.", va="center", fontsize=SMALL, color=INK)  # fmt: skip
    ax.text(0, -0.88, "Solid cache entries are read, hatched ones are written. Each sequence has "
            "its own.", va="center", fontsize=SMALL, color=INK)  # fmt: skip
    headline = "One sequence: a prefill, then a decode step per token"
    line = style.title(ax, headline, "any GPU", "calculated", "a drawing")
    style.describe(
        ax,
        f"{headline} ({line}). Three passes, one below the other. Prefill takes the four tokens of "
        "the prompt at once through all weights, gives one token, and writes four entries into the "
        "cache. Each decode step takes the one newest token through all weights again, reads every "
        "earlier entry of the cache, writes one, and gives one token.",
    )
    return ax


def _pass(ax: Any, y: float, stage: str, tokens: tuple[str, ...], out: str, kept: int) -> None:
    """One pass through the model at height ``y``; ``kept`` entries lie in the cache already."""
    from matplotlib.patches import Rectangle

    ax.text(0, y + 0.42, stage, va="center", fontsize=TEXT, fontweight="bold", color=INK)
    wide, start = 0.72, 1.55 - 0.37 * len(tokens)
    for i, token in enumerate(tokens):
        _box(ax, start + i * 0.74, y, wide, token)
    ax.add_patch(Rectangle((3.45, y - 0.36), 1.6, 0.72, facecolor=PALE, edgecolor=GREY,
                           linewidth=1.2))  # fmt: skip
    ax.text(4.25, y, "every layer", ha="center", va="center", fontsize=SMALL, color=INK)
    for left, right in ((3.05, 3.42), (5.1, 5.72)):
        ax.annotate("", (right, y), xytext=(left, y),
                    arrowprops=dict(arrowstyle="-|>", color=INK, linewidth=1.2))  # fmt: skip
    _box(ax, 5.82, y, 0.76, out, bold=True)
    for i in range(kept + len(tokens)):
        new = i >= kept
        ax.add_patch(Rectangle((7.28 + i * 0.42, y - 0.22), 0.34, 0.44, linewidth=1.0,
                               facecolor=PAPER if new else BLUE, edgecolor=BLUE,
                               hatch="////" if new else "",
                               gid="written" if new else "read"))  # fmt: skip


def _box(ax: Any, x: float, y: float, wide: float, text: str, bold: bool = False) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y - 0.2), wide, 0.4, facecolor=PAPER, edgecolor=INK,
                           linewidth=1.6 if bold else 1.0))  # fmt: skip
    ax.text(x + wide / 2, y, text, ha="center", va="center", fontsize=SMALL, color=INK)


def draw_batch(
    context: int = 1024,
    weights: str = "fp16",
    device: Any = "t4",
    *,
    model: Model | None = None,
    use: float = inference.KEPT_FREE,
) -> Any:
    """Draw one decode step against the batch: time above, tokens per second below; both Axes.

    ``context``: tokens in the cache of each sequence. ``weights``: one of WEIGHTS. ``device``: a
    Device, or its key or name, drawn from its datasheet peaks. Dashed: the weights alone, whose
    trip the batch shares, and what throughput would be if latency stayed that of batch 1. The
    hatched part does not fit into the share ``use`` of the memory. Model: `inference.decode`.
    """
    device = get(device) if isinstance(device, str) else device
    if weights not in WEIGHTS:
        raise ValueError(f"Unknown weights {weights!r}; use {', '.join(WEIGHTS)}.")
    shape = model or inference.model()
    shape = shape if weights == "fp16" else shape.quantised(WEIGHTS[weights])
    roof = roofline.datasheet(device)
    fits = inference.largest_batch(shape, device.memory, context, use)
    knee = step_of(shape, roof)
    across = sorted({2**k for k in range(11)} | {b for b in (fits, knee) if 1 <= b <= MOST})
    alone = [max(1.0, b / knee) * shape.step_weights / roof.bandwidth for b in across]
    inside = [b for b in across if b <= fits and b != knee]
    whole = [inference.decode(shape, roof, b, context).seconds for b in inside]
    one = inference.decode(shape, roof, 1, context).seconds
    _, pair = style.figure(6.9, rows=2)
    top, bottom = (style.axes(ax) for ax in pair)
    rates = [b / t for b, t in zip(inside, whole, strict=True)]
    _curves(top, "time per step", "s", (inside, whole), (across, alone), "the weights alone")
    _curves(bottom, "tokens per second", "", (inside, rates), (inside, [b / one for b in inside]),
            "if every row were free")  # fmt: skip
    for ax in (top, bottom):
        _marks(ax, knee, fits)
    gain = rates[-1] * one if inside else 0.0
    head = _headline(fits, gain)
    budget = f"{shape.name} · context {context:,} · {use:.0%} of {device.memory / 1e9:.3g} GB used"
    line = style.title(top, head, device.name, "calculated", f"{ROOF} · {budget}", 66)
    style.title(bottom, "What the batch buys", device.name, "calculated", ROOF)
    style.describe(
        top,
        f"{head} ({line}). Time of one decode step against the batch, both axes logarithmic. "
        f"The weights alone take {style.quantity(alone[0], 's')} up to a batch of "
        f"{style.number(round(knee))}, then their arithmetic decides. "
        + (f"With the cache a step takes {style.quantity(whole[0], 's')} at batch 1 and "
           f"{style.quantity(whole[-1], 's')} at {inside[-1]:,}. " if inside else "")
        + (f"Beyond {fits:,} sequences the memory is full." if fits < MOST else ""),
    )  # fmt: skip
    ends = f"At batch {inside[-1]:,}: {inside[-1] / whole[-1]:,.0f}. " if inside else ""
    style.describe(bottom, f"Tokens per second against the batch. {ends}"
                           "A dashed line shows what free rows would give.")  # fmt: skip
    return top, bottom


def step_of(shape: Model, roof: roofline.Roof) -> float:
    """Return the batch at which the weights' arithmetic takes as long as their trip."""
    return shape.step_weights / roof.bandwidth * roof.rates["fp16"] / (2 * shape.matrices)


def _headline(fits: int, gain: float) -> str:
    if fits == 0:
        return "Not even one sequence fits"
    if fits > MOST:
        return f"Batch {MOST:,}: ×{style.number(gain, 2)} the tokens of batch 1"
    times = "one sequence fits" if fits == 1 else f"{fits:,} sequences fit"
    return f"{times[0].upper()}{times[1:]}: ×{style.number(gain, 2)} the tokens of batch 1"


def _curves(ax: Any, label: str, unit: str, whole: Any, dashed: Any, name: str) -> None:
    """Two lines, each a pair (batches, values), on log axes; the key lies below the panel."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    values = [*whole[1], *dashed[1]] or [1.0]
    size, said = style.scale(max(values), unit) if unit else (1.0, "")
    ax.plot(dashed[0], [v / size for v in dashed[1]], color=VERMILLION, linestyle="--",
            linewidth=1.8, label=name)  # fmt: skip
    ax.plot(whole[0], [v / size for v in whole[1]], color=BLUE, marker="o", markersize=5,
            linewidth=2.2, label="the whole step, its cache included")  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlim(0.9, MOST * 1.15)
    low, high = min(values) / size, max(values) / size
    ax.set_ylim(low / 1.25, high * 1.25 * (1.5 * high / low) ** 0.25)  # a strip for the labels
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    subs = (1, 2, 5) if high / low < 40 else (1,)
    ax.yaxis.set_major_locator(LogLocator(subs=subs))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: style.number(v)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(True, axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    if not dashed[0]:
        ax.set_yticks([])
    ax.set_xlabel("batch: sequences per step, log scale", fontsize=TEXT, color=INK)
    unit = f" ({said})" if said else ""
    ax.set_ylabel(f"{label}{unit},\nlog scale", fontsize=TEXT, color=INK)
    style.legend(ax, columns=2)


def _marks(ax: Any, knee: float, fits: int) -> None:
    """The knee of the weights' arithmetic, and the part that does not fit, hatched."""
    if 1 <= knee <= MOST:
        ax.axvline(knee, color=INK, linestyle=(0, (1, 2)), linewidth=1.4, gid="knee")
        left = knee < fits < 8 * knee  # else the label would lie across the wall
        ax.annotate(f"knee: {style.number(round(knee))} rows", (knee, 1),
                    xycoords=("data", "axes fraction"), xytext=(-4 if left else 4, -17),
                    textcoords="offset points", ha="right" if left else "left", va="top",
                    fontsize=SMALL, color=INK,
                    bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.0))  # fmt: skip
    if fits < MOST:
        ax.axvspan(max(fits, 0.9), MOST * 1.15, facecolor="none", edgecolor=GREY, hatch="//",
                   linewidth=0, alpha=0.35, zorder=0, gid="full")  # fmt: skip
        ax.axvline(max(fits, 0.9), color=GREY, linewidth=1.4, gid="wall")
        near_end = fits > MOST / 5
        ax.annotate("out of memory", (max(fits, 0.9), 1), xycoords=("data", "axes fraction"),
                    xytext=(-4 if near_end else 4, -3), textcoords="offset points", va="top",
                    ha="right" if near_end else "left", fontsize=SMALL, color=INK,
                    bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.0))  # fmt: skip
