"""Prediction beside the bounds and the measurement, and the ledger of what explains a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers.plots import style
from helpers.plots.style import BLUE, GREEN, INK, ORANGE, PALE, PAPER, SKY, SMALL, TEXT, VERMILLION

CUT = 5.0  # a bar longer than this many times the next one is cut, and says so


@dataclass(frozen=True)
class Bars:
    """Four times for one call, in seconds; None where there is none (device unknown, no guess)."""

    prediction: float | None
    datasheet: float | None
    ceiling: float | None
    measured: float | None


_ROWS = (
    ("prediction", "your prediction", dict(facecolor=PAPER, edgecolor=VERMILLION, hatch="///")),
    ("datasheet", "datasheet bound", dict(facecolor=PAPER, edgecolor=INK, linestyle="--")),
    ("ceiling", "ceiling bound", dict(facecolor=PALE, edgecolor=INK, hatch="..")),
    ("measured", "measurement", dict(facecolor=BLUE, edgecolor=BLUE)),
)
_RUNS = {"simulated": "simulated run", "replayed": "replayed run"}  # never called a measurement


def off_by(prediction: float, measured: float) -> float:
    """Return how many times too large or too small a prediction was: always at least 1."""
    if prediction <= 0 or measured <= 0:
        raise ValueError("off_by compares two times above zero, in seconds.")
    return max(prediction / measured, measured / prediction)


def verdict(bars: Bars) -> str:
    """Return the sentence that compares prediction and measurement, or says why it cannot."""
    if bars.prediction is None:
        return "no prediction was made"
    if bars.measured is None:
        return "not measured yet"
    factor = off_by(bars.prediction, bars.measured)
    if factor < 1.05:
        return f"your prediction was off by ×{factor:.2f}: right"
    side = "too long" if bars.prediction > bars.measured else "too short"
    return f"your prediction was off by ×{style.number(factor, 2)} ({side})"


def draw_bars(
    ax: Any, bars: Bars, title: str, origin: str, device: str, *, what: str = "time per call"
) -> Any:
    """Draw the four times of ``bars`` as horizontal bars with their numbers; return the Axes."""
    ax = style.axes(ax, 3.1)
    rows = [*_ROWS[:-1], ("measured", _RUNS.get(origin, "measurement"), _ROWS[-1][2])]
    values = {key: getattr(bars, key) for key, _, _ in rows}
    known = sorted(v for v in values.values() if v is not None)
    if not known or known[0] <= 0:
        raise ValueError("draw_bars needs at least one time, and every time above zero seconds.")
    longest = known[-1]
    if len(known) > 1 and longest > CUT * known[-2]:
        longest = CUT * known[-2] / 2.5
    size, unit = style.scale(longest, "s")
    limit = longest / size
    for row, (key, label, look) in enumerate(rows):
        value = values[key]
        if value is None:
            ax.text(limit * 0.01, row, "none", va="center", fontsize=TEXT, color=INK)
            continue
        shown = value / size
        ax.barh(row, min(shown, limit), height=0.62, linewidth=1.4, label=label, **look)
        text = f"{style.number(shown)} {unit}"
        if shown > limit:
            _tear(ax, limit, row)
            text += ", bar cut"
        ax.text(min(shown, limit) + limit * 0.015, row, text, va="center", fontsize=TEXT, color=INK)
    ax.set_yticks(range(len(rows)), [label for _, label, _ in rows], fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, limit * 1.3)
    ax.set_xlabel(f"{what} ({unit})", fontsize=TEXT, color=INK)
    sentence = verdict(bars)
    line = style.title(ax, title, device, origin, chars=70)
    ax.annotate(sentence[0].upper() + sentence[1:], (0, 0), xycoords="axes fraction",
                xytext=(0, -48), textcoords="offset points", fontsize=TEXT, fontweight="bold",
                color=INK, annotation_clip=False, gid="verdict")  # fmt: skip
    said = [f"{label} {style.quantity(values[key], 's')}" for key, label, _ in rows
            if values[key] is not None]  # fmt: skip
    style.describe(ax, f"{title} ({line}). Bars of {what}: {', '.join(said)}; {sentence}.")
    return ax


def _tear(ax: Any, x: float, row: float) -> None:
    """Mark the end of a cut bar with two slanted strokes."""
    for shift in (0.965, 0.98):
        ax.plot([x * (shift - 0.008), x * (shift + 0.008)], [row + 0.4, row - 0.4],
                color=PAPER, linewidth=2.5, zorder=3)  # fmt: skip


_PARTS: Mapping[str, Mapping[str, Any]] = {
    "memory": dict(facecolor=SKY, hatch=""),
    "weights": dict(facecolor=SKY, hatch=""),
    "caches": dict(facecolor=ORANGE, hatch="//"),
    "compute": dict(facecolor=ORANGE, hatch=".."),
    "host": dict(facecolor=GREEN, hatch="\\\\"),
    "left over": dict(facecolor=PAPER, hatch="xx"),
}


def draw_ledger(
    ax: Any, ledgers: Any, origin: str, device: str, *, title: str = "Where the time went"
) -> Any:
    """Draw measured time as one stacked bar per ledger: what the model explains, and what is left.

    ``ledgers``: one ledger, or a mapping from label to ledger. A ledger has ``rows`` (pairs of name
    and seconds, or objects with such attributes; a name holds memory, compute or host, or
    memory's parts, weights and caches) and
    ``left_over_s``. A negative left-over is written beside the bar: the model asked for more time
    than was measured.
    """
    ledgers = ledgers if isinstance(ledgers, Mapping) else {"measured": ledgers}
    ax = style.axes(ax, 1.9 + 0.5 * len(ledgers))
    books = {label: (list(_rows(book)), _left(book)) for label, book in ledgers.items()}
    totals = {k: sum(s for _, s in rows) + ledgers[k].left_over_s for k, (rows, _) in books.items()}
    size, unit = style.scale(max(totals.values()), "s")
    end = max(max(t, sum(s for _, s in books[k][0])) for k, t in totals.items()) / size
    said, seen = [], set()
    for row, (label, (rows, left)) in enumerate(books.items()):
        start, parts, total = 0.0, [*rows], totals[label]
        if left > 0:
            parts.append(("left over", left))
        for name, seconds in parts:
            width = seconds / size
            if width <= 0:
                continue
            ax.barh(row, width, left=start, height=0.6, edgecolor=INK, linewidth=1.0,
                    label=None if name in seen else name, **_PARTS[name])  # fmt: skip
            seen.add(name)
            if width > 0.09 * end:
                ax.text(start + width / 2, row, f"{100 * seconds / total:.0f} %", ha="center",
                        va="center", fontsize=SMALL, color=INK,
                        bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.2))  # fmt: skip
            start += width
        text = f"{style.number(total / size)} {unit}"
        if left < 0:
            ax.plot([total / size] * 2, [row - 0.38, row + 0.38], color=INK, linewidth=2.0)
            text += f"; the model asks for {style.quantity(-left, 's')} more"
        ax.text(start + 0.015 * end, row, text, va="center", fontsize=SMALL, color=INK)
        shares = ", ".join(f"{name} {100 * s / total:.0f} %" for name, s in parts if s > 0)
        said.append(f"{label}: {text}, of which {shares}.")
    ax.set_yticks(range(len(books)), list(books), fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(books) - 0.4, -0.6)
    over = any(left < 0 for _, left in books.values())
    ax.set_xlim(0, end * (1.75 if over else 1.2))
    ax.set_xlabel(f"time ({unit})", fontsize=TEXT, color=INK)
    style.legend(ax, columns=4, order=_PARTS)
    more = "left over: unexplained" if "left over" in seen else ""
    line = style.title(ax, title, device, origin, more, 74)
    style.describe(ax, f"{title} ({line}). {' '.join(said)}")
    return ax


def _left(book: Any) -> float:
    """The left-over in seconds, 0.0 below what a bar can show: rounding is not a question."""
    measured = sum(seconds for _, seconds in _rows(book)) + book.left_over_s
    return 0.0 if abs(book.left_over_s) < 0.005 * measured else book.left_over_s


def _rows(book: Any) -> Iterable[tuple[str, float]]:
    for row in book.rows:
        if isinstance(row, tuple | list):
            name, seconds = row[0], row[1]
        else:
            name = getattr(row, "name", None) or row.label
            seconds = row.seconds
        part = next((p for p in _PARTS if p in name.lower()), None)
        if part is None:
            raise ValueError(f"Ledger row {name!r}: the name must hold one of {', '.join(_PARTS)}.")
        if part != "left over":
            yield part, seconds
