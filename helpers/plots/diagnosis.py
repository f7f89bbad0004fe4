"""A case to diagnose: its numbers, and on demand the three times with the verdict."""

from __future__ import annotations

from typing import Any

from helpers.checks.cases import ANOTHER, LEAST, MOST, NEXT, Case
from helpers.plots import style
from helpers.plots.style import GREEN, INK, ORANGE, PALE, PAPER, SKY, SMALL, TEXT

LOOKS = {
    "compute": dict(facecolor=ORANGE, hatch=".."),
    "memory": dict(facecolor=SKY, hatch=""),
    "overhead": dict(facecolor=GREEN, hatch="\\\\"),
}


def draw_diagnosis(ax: Any, case: Case, number: int = 1, solved: bool = False) -> Any:
    """Draw the measured time of ``case`` and, if ``solved``, what each part would take.

    Unsolved, question marks stand for the three bars: the numbers beside them are all there is.
    The band runs from 60 to 110 % of the measured time: a bucket is named if the longest bar ends
    inside. Datasheet peaks; milliseconds.
    """
    ax = style.axes(ax, 3.9)
    parts = case.parts
    rows = {
        "measured": f"measured\n{case.ms:g} ms",
        "compute": f"arithmetic\n{case.tflop:g} TFLOP\nat {case.tflop_per_s:,.4g} TFLOP/s",
        "memory": f"memory\n{case.gb:g} GB\nat {case.gb_per_s:,.4g} GB/s",
        "overhead": f"host\n{case.launches:,} launches\nof {case.us_each:g} µs",
    }
    longest = max(case.ms * 1.35, *(parts.values() if solved else [0.0]))
    ax.axvspan(LEAST * case.ms, MOST * case.ms, facecolor=PALE, zorder=0)
    band = f"{100 * LEAST:.0f} to {100 * MOST:.0f} %: named"
    ax.text(1.03 * MOST * case.ms, -0.62, band, va="center", fontsize=SMALL, color=INK)
    ax.annotate("", (MOST * case.ms, -0.62), xytext=(LEAST * case.ms, -0.62),
                arrowprops=dict(arrowstyle="|-|,widthA=0.25,widthB=0.25", color=INK,
                                shrinkA=0, shrinkB=0))  # fmt: skip
    ax.barh(0, case.ms, height=0.55, facecolor=PAPER, edgecolor=INK, linewidth=1.6)
    for row, name in enumerate(("compute", "memory", "overhead"), 1):
        if not solved:
            ax.text(0.02 * longest, row, "?", va="center", fontsize=14, color=INK, gid="unknown")
            continue
        ax.barh(row, parts[name], height=0.55, edgecolor=INK, linewidth=1.0, **LOOKS[name])
        share = f"{style.number(parts[name])} ms, {100 * parts[name] / case.ms:.0f} %"
        ax.text(parts[name] + 0.015 * longest, row, share, va="center", fontsize=TEXT, color=INK,
                bbox=dict(facecolor=PAPER, edgecolor="none", pad=0.6, alpha=0.85))  # fmt: skip
    ax.set_yticks(range(len(rows)), rows.values(), fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(3.5, -0.9)
    ax.set_xlim(0, longest * 1.25)
    ax.set_xlabel("time (ms)", fontsize=TEXT, color=INK)
    said = _verdict(case)
    headline = f"Case {number}: {said}" if solved else f"Case {number}: what limits this step?"
    more = "rates from the datasheet, all kernels alike"
    line = style.title(ax, headline, case.card, "calculated", more, chars=70)
    given = "; ".join(" ".join(text.split("\n")) for text in rows.values())
    result = (
        f"Arithmetic {style.number(parts['compute'])} ms, memory {style.number(parts['memory'])} "
        f"ms, host {style.number(parts['overhead'])} ms: {said}."
        if solved
        else "The three times and the verdict are hidden."
    )
    style.describe(ax, f"Case {number} ({line}): {given}. {result}")
    return ax


def _verdict(case: Case) -> str:
    if case.verdict == ANOTHER:
        return f"needs another test: {NEXT[case.kind]}"
    name = {"memory": "memory-bound", "compute": "compute-bound", "overhead": "overhead-bound"}
    return f"{name[case.verdict]}, so {NEXT[case.kind]}"
