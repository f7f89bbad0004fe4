"""What remedies save: the cost of a token after each, for several profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from helpers.plots import style
from helpers.plots.style import GREY, INK, PAPER, SMALL, TEXT

HATCHES = ("", "///", "..", "xx")
FACES = (style.SKY, style.ORANGE, PAPER, style.GREEN)


def draw_remedies(
    ax: Any,
    gains: Mapping[str, Mapping[str, float]],
    *,
    device: str,
    origin: str = "calculated",
    title: str = "What is left of the cost",
) -> Any:
    """Draw the cost of a token after each remedy as a share of the cost before; return the Axes.

    ``gains[profile][remedy]``: cost before over cost after, above 0; others are left out and named.
    """
    remedies = list(dict.fromkeys(r for row in gains.values() for r in row))
    if not remedies or len(remedies) > len(HATCHES):
        raise ValueError(f"draw_remedies needs 1 to {len(HATCHES)} remedies, not {len(remedies)}.")
    thick = 0.8 / len(remedies)
    ax = style.axes(ax, 1.9 + 0.28 * len(gains) * len(remedies))
    said, unknown = [], []
    longest = 100.0
    for row, (profile, by_remedy) in enumerate(gains.items()):
        for i, remedy in enumerate(remedies):
            gain = by_remedy.get(remedy, math.nan)
            if not (math.isfinite(gain) and gain > 0):
                unknown.append(f"{profile}, {remedy}")
                continue
            share = 100 / gain
            longest = max(longest, share)
            y = row + (i - (len(remedies) - 1) / 2) * thick
            ax.barh(y, share, height=0.86 * thick, hatch=HATCHES[i], edgecolor=INK, linewidth=1.0,
                    facecolor=FACES[i],
                    label=remedy if row == 0 else None, gid=f"{profile}, {remedy}")  # fmt: skip
            text = "no change" if 0.98 < gain < 1.02 else f"÷ {style.number(gain, 2)}"
            ax.text(share + 1.5, y, text, va="center", fontsize=SMALL, color=INK)
            said.append(f"{profile}, {remedy}: {share:.0f} %.")
    ax.axvline(100, color=GREY, linewidth=1.2, linestyle=(0, (6, 3)), zorder=0)
    ax.set_yticks(range(len(gains)), list(gains), fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(gains) - 0.45, -0.55)
    ax.set_xlim(0, longest * 1.2)
    ax.set_xlabel("cost of a token, % of before", fontsize=TEXT, color=INK)
    style.legend(ax, columns=len(remedies))
    more = f"unknown: {'; '.join(unknown)}" if unknown else ""
    line = style.title(ax, title, device, origin, more, 74)
    style.describe(ax, f"{title} ({line}). Shares of the cost before. {' '.join(said)}")
    return ax
