"""Inference stages: where they stand on a roofline, and what the rungs of gpt-fast removed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers import inference
from helpers.devices import get
from helpers.facts import fact, label
from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SERIES, SMALL, TEXT, VERMILLION
from helpers.roofline import attainable, datasheet, ridge

NEAR = 1.5
"""Points on the roof that are closer than this factor share one label."""


@dataclass(frozen=True)
class Stage:
    """One stage: ``intensity`` in FLOP/B; ``rate`` in FLOP/s, or None for a place on the roof.

    A stage with a rate was run; the figure says how far below the roof it lies.
    """

    label: str
    intensity: float
    rate: float | None = None


def draw_stage_map(
    ax: Any,
    roof: Any,
    stages: Sequence[Stage],
    dtype: str = "fp16",
    *,
    origin: str,
    device: str = "",
    title: str = "Where the stages stand",
    note: str = "",
    reach: float = 0.0,
) -> Any:
    """Draw ``stages`` under one roof on two log axes; return the Axes.

    ``roof``: a Roof with ``rates[dtype]``. A stage without a rate stands hollow on the roof, where
    it could be at best; one with a rate is filled, with a line from the roof down to it.
    ``device``: by default the roof's. ``reach``: an intensity in FLOP/B that the axis must show,
    for what the caller adds. ValueError for no stage or a value that is not above zero.
    """
    _check(stages)
    ax = style.axes(ax, 4.6)
    turn, peak = ridge(roof, dtype), roof.rates[dtype]
    low = min(0.1, turn / 100, *(s.intensity / 2 for s in stages))
    high = max(16 * turn, 2 * reach, *(s.intensity * 4 for s in stages))
    floor = min([low * roof.bandwidth, *(s.rate / 4 for s in stages if s.rate)])
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(low, high)
    ax.set_ylim(floor, 12 * peak)
    ax.axvspan(low, turn, color=PALE, alpha=0.45, linewidth=0, zorder=0)
    ax.plot([low, turn, high], [low * roof.bandwidth, peak, peak], color=BLUE, linewidth=2.4)
    ax.axvline(turn, color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
    heads = (
        (low, "left", f" memory-bound\n {style.quantity(roof.bandwidth, 'B/s')}"),
        (high, "right", f"compute-bound \n{style.quantity(peak, 'FLOP/s')} "),
    )
    for x, side, text in heads:
        ax.text(x, 9 * peak, text, ha=side, va="top", fontsize=SMALL, fontweight="bold", color=INK,
                gid="keep")  # fmt: skip
    ax.annotate(
        f"ridge {style.number(turn)}", (turn, floor), xytext=(4, 4), textcoords="offset points",
        fontsize=SMALL, color=INK, gid="keep",
    )  # fmt: skip
    spots = []
    for i, stage in enumerate(stages):
        best = attainable(roof, stage.intensity, dtype)
        color, marker, _ = SERIES[i % len(SERIES)]
        run = stage.rate is not None
        at = stage.rate if run else best
        if run and best > 1.15 * at:
            ax.plot([stage.intensity] * 2, [best, at], color=VERMILLION, linewidth=1.3,
                    linestyle="--", gid="gap")  # fmt: skip
        ax.plot(stage.intensity, at, marker=marker, linestyle="none", markersize=9, color=color,
                markerfacecolor=color if run else PAPER, markeredgewidth=1.8, zorder=5,
                gid=f"stage {stage.label}")  # fmt: skip
        said = stage.label
        if run and best > 1.15 * at:
            said += f", ÷{style.number(best / at, 2)}"
        spots.append((stage.intensity, at, said))
    _axes_names(ax)
    line = style.title(ax, title, device or roof.device, origin, note or roof.label)
    style.place_labels(ax, _together(spots))
    told = [_told(s, roof, dtype) for s in stages]
    style.describe(
        ax,
        f"{title} ({line}). A roofline with its ridge at {style.number(turn)} FLOP/B. "
        f"{'; '.join(told)}. Both axes are logarithmic.",
    )
    return ax


def _check(stages: Sequence[Stage]) -> None:
    if not stages:
        raise ValueError("draw_stage_map needs at least one stage.")
    for s in stages:
        if not (s.intensity > 0 and (s.rate is None or s.rate > 0)):
            raise ValueError(f"Stage {s.label!r}: log axes need values above zero.")


def _told(stage: Stage, roof: Any, dtype: str) -> str:
    side = "compute" if stage.intensity > ridge(roof, dtype) else "memory"
    text = f"{stage.label}: {style.number(stage.intensity)} FLOP/B, {side} side"
    if stage.rate is None:
        return text
    best = attainable(roof, stage.intensity, dtype)
    below = best / stage.rate
    where = f"{style.number(below, 2)} times below" if below > 1.15 else "on"
    return f"{text}, {where} the roof"


def _together(spots: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Spots that lie on each other share one label, a line for each."""
    groups: list[tuple[float, float, str]] = []
    for x, y, text in sorted(spots):
        if groups and x < NEAR * groups[-1][0] and 1 / NEAR < y / groups[-1][1] < NEAR:
            groups[-1] = (*groups[-1][:2], f"{groups[-1][2]}\n{text}")
        else:
            groups.append((x, y, text))
    return groups


def _axes_names(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.set_xlabel("arithmetic intensity (FLOP/B), log scale", fontsize=TEXT, color=INK)
    ax.set_ylabel("rate (TFLOP/s), log scale", fontsize=TEXT, color=INK)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1e12:g}"))


# ---------------------------------------------------------------- the explorer's figure

STAGES = ("prefill", "attention in prefill", "decode", "weights in decode", "attention in decode")
"""What the explorer of notebook 07 can show."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def stage_part(stage: str, batch: int, context: int, roof: Any, model: Any = None) -> Any:
    """Return the `inference.Part` (or, for a whole stage, the Step) of one of STAGES."""
    if stage not in STAGES:
        raise ValueError(f"Unknown stage {stage!r}; use {', '.join(STAGES)}.")
    model = model or inference.model()
    if "prefill" in stage:
        step = inference.prefill(model, roof, context, batch)
    else:
        step = inference.decode(model, roof, batch, context)
    part = {"attention": step.attention, "weights": step.weights}
    return part.get(stage.split()[0], step)


def draw_stage_explorer(
    ax: Any = None,
    stage: str = "decode",
    batch: int = 1,
    context: int = 1024,
    device: Any = "t4",
) -> Any:
    """Draw one stage of Llama-2-7B under the datasheet roof of ``device``; return the Axes.

    ``device``: a Device, or its key or name. Small rings: the same stage at other batches of
    BATCHES, as far as weights and cache fit into KEPT_FREE of the card's memory. A stage of two
    parts takes their times one after the other, so it can lie below the roof. Activations are left
    out.
    """
    device = get(device) if isinstance(device, str) else device
    model, roof = inference.model(), datasheet(device)
    now = stage_part(stage, batch, context, roof)
    took = now.seconds
    size = {b: model.weights + inference.kv_cache(model, b, context) for b in BATCHES}
    room = inference.KEPT_FREE * device.memory
    shown = [b for b in BATCHES if size[b] <= room] or [1]
    others = [stage_part(stage, b, context, roof) for b in shown]
    bounds = {name: part.bound for name, part in _parts(now).items()}
    headline = f"{stage}, batch {batch}: {style.number(now.intensity)} FLOP/B, " + (
        f"{now.bound}-bound" if len(set(bounds.values())) == 1 else "two bounds"
    )
    note = f"at its datasheet peak · weights and cache: {style.quantity(size[batch], 'B')}, " + (
        "fits" if size[batch] <= room else "does not fit"
    )
    if len(set(bounds.values())) > 1:
        note += " · " + ", ".join(f"{name} {bound}-bound" for name, bound in bounds.items())
    said = f"batch {batch}, {style.quantity(took, 's')}"
    ax = draw_stage_map(
        ax, roof, [Stage(said, now.intensity, now.flops / took)], origin="calculated",
        device=device.name, title=headline[0].upper() + headline[1:], note=note,
        reach=max(p.intensity for p in others),
    )  # fmt: skip
    ax.plot([p.intensity for p in others], [p.flops / p.seconds for p in others], color=GREY,
            marker="o", markersize=4, markerfacecolor=PAPER, linewidth=0.9, linestyle=":",
            zorder=3, gid="batches")  # fmt: skip
    first, last = others[0], others[-1]
    style.describe(
        ax,
        f"{ax._in_words} Context {context:,} tokens; one {stage} takes "
        f"{style.quantity(took, 's')}. From batch {shown[0]} to {shown[-1]}, the largest that fits "
        f"of those drawn, the intensity goes from {style.number(first.intensity)} to "
        f"{style.number(last.intensity)} FLOP/B.",
    )
    return ax


def _parts(now: Any) -> dict[str, Any]:
    if isinstance(now, inference.Step):
        return {"weights": now.weights, "attention": now.attention}
    return {"all": now}


# ---------------------------------------------------------------- the ladder


@dataclass(frozen=True)
class Rung:
    """One rung of gpt-fast: ``tokens`` per second, and the weights' ``bytes`` that a step reads.

    ``bytes`` is None where a step no longer makes one token. ``step`` names what led here.
    """

    name: str
    step: str
    tokens: float
    bytes: float | None


def ladder() -> tuple[Rung, ...]:
    """Return the published rungs. Bytes: the README's bandwidth over its tokens per second."""

    def tokens(name: str) -> float:
        return float(fact(f"result.gpt_fast.{name}").value)

    def read(name: str) -> float:
        at = f"result.gpt_fast_readme.{name}"
        return fact(f"{at}_bandwidth").value / fact(at).value

    return (
        Rung("eager", "", tokens("eager"), read("fp16")),
        Rung("compiled", "compile", tokens("compiled"), read("fp16")),
        Rung("int8 weights", "int8", tokens("int8"), read("int8")),
        Rung("int4 weights", "int4", tokens("int4"), read("int4")),
        Rung("speculative", "speculative", tokens("all"), None),
    )


def draw_ladder(ax: Any = None, removed: Mapping[str, Any] | None = None) -> Any:
    """Draw gpt-fast's time per token, rung by rung; return the Axes.

    ``removed``: what each step took away, by the ``step`` of its rung; a question mark where it is
    absent or not a text. Solid: reading the weights once at the bandwidth that gpt-fast assumes. A
    rung without ``bytes`` is one dotted bar.
    """
    rungs, removed = ladder(), removed or {}
    bandwidth = fact("result.gpt_fast.mbu_bandwidth").value
    ax = style.axes(ax, 4.1)
    longest = 1e3 / min(r.tokens for r in rungs)
    told = []
    for row, rung in enumerate(rungs):
        total = 1e3 / rung.tokens
        if rung.bytes is None:
            ax.barh(row, total, height=0.5, facecolor=PALE, edgecolor=INK, hatch="..",
                    label="not told apart")  # fmt: skip
        else:
            floor = rung.bytes / bandwidth * 1e3
            ax.barh(row, floor, height=0.5, facecolor=BLUE, edgecolor=BLUE,
                    label="reading the weights once" if row == 0 else None)  # fmt: skip
            ax.barh(row, total - floor, left=floor, height=0.5, facecolor=PAPER, edgecolor=INK,
                    hatch="///", label="everything else" if row == 0 else None)  # fmt: skip
        said = f"{style.number(total)} ms, {rung.tokens:g} tokens/s"
        ax.text(total + 0.015 * longest, row, said, va="center", fontsize=SMALL, color=INK)
        word = removed.get(rung.step)
        word = word if isinstance(word, str) else "?"
        if rung.step:
            times = rung.tokens / rungs[row - 1].tokens
            ax.text(longest * 1.5, row - 0.5, f"×{times:.2f}  removed: {word}", va="center",
                    ha="right", fontsize=SMALL, fontweight="bold", color=INK,
                    gid=f"step {rung.step}")  # fmt: skip
            told.append(f"{rung.name} {said}, {times:.2f} times faster, removed: {word}")
        else:
            told.append(f"{rung.name} {said}")
    ax.set_yticks(range(len(rungs)), [r.name for r in rungs], fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rungs) - 0.5, -0.6)
    ax.set_xlim(0, longest * 1.5)
    ax.set_xticks(range(0, math.ceil(longest) + 1, 10))
    ax.set_xlabel("time per token (ms)", fontsize=TEXT, color=INK)
    style.legend(ax, columns=3)
    title = "gpt-fast, rung by rung: what did each step remove?"
    device = "A100 80 GB limited to 330 W"
    line = style.title(ax, title, device, "published", "Llama-2-7B, batch 1, 2023")
    style.describe(
        ax,
        f"{title} ({line}). {label('result.gpt_fast')}. Bars of time per token: "
        f"{'; '.join(told)}. Reading the weights once, at {style.quantity(bandwidth, 'B/s')}, "
        f"takes {style.number(rungs[0].bytes / bandwidth * 1e3)} ms of the first two. The last "
        f"bar is not split.",
    )
    return ax
