"""The three factory pictures of the self-test: one bucket each, without saying which."""

from __future__ import annotations

from typing import Any

from helpers.checks.cases import ORDERS, buckets_of
from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, VERMILLION

WALL, GATE, END, DESK, WIDE = 2.0, 6.0, 8.7, 9.15, 10.8  # x of the buildings, and the width
HIGH = 1.5
MACHINES = 8
ORDERS_WAITING = 5

WORDS = {
    "compute": "all machines work, loaded lorries stand in front of the gate, and orders pile up "
    "on the dispatcher's desk",
    "memory": "two of eight machines work, the road is full of lorries on their way, and orders "
    "pile up on the dispatcher's desk",
    "overhead": "two of eight machines work, one lorry is on the road, and the desk is empty: the "
    "dispatcher is writing the next order",
}


def draw_factories(axes: Any = None, picture: int = 1) -> Any:
    """Draw three factories, A, B and C, one bound by each bucket; return the three Axes.

    ``picture``: which of the six arrangements, 1 to 6. Machines at work are filled and hatched.
    """
    if not (isinstance(picture, int) and 1 <= picture <= len(ORDERS)):
        raise ValueError(f"There are pictures 1 to {len(ORDERS)}, not {picture!r}.")
    if axes is None:
        fig, _ = style.figure(5.1)
        fig.clear()
        axes = fig.subplots(3, 1)
    said = []
    for ax, (letter, bucket) in zip(axes, buckets_of(picture).items(), strict=True):
        style.axes(ax)
        _scene(ax, bucket)
        ax.text(0.0, HIGH + 0.42, letter, fontsize=style.TITLE, fontweight="bold", color=INK,
                va="center", gid="letter")  # fmt: skip
        said.append(f"{letter}: {WORDS[bucket]}.")
    line = style.title(axes[0], "Three factories: who waits for whom?", "any GPU", "calculated",
                       "hatched machines work, white ones stand idle")  # fmt: skip
    style.describe(axes[0], f"Three factories ({line}). {' '.join(said)}")
    return axes


def _scene(ax: Any, bucket: str) -> None:
    from matplotlib.patches import Rectangle

    for x, width, name in ((0.0, WALL, "warehouse"), (GATE, END - GATE, "factory")):
        ax.add_patch(Rectangle((x, 0), width, HIGH, facecolor=PALE, edgecolor=INK, linewidth=1.3))
        ax.text(x + width / 2, HIGH + 0.08, name, ha="center", va="bottom", fontsize=SMALL,
                color=INK)  # fmt: skip
    for y in (0.05, 0.75):
        ax.plot([WALL, GATE], [y, y], color=GREY, linewidth=1.0)
    _machines(ax, MACHINES if bucket == "compute" else 2)
    _lorries(ax, bucket)
    _dispatcher(ax, 0 if bucket == "overhead" else ORDERS_WAITING)
    ax.set_xlim(-0.1, WIDE + 0.1)
    ax.set_ylim(-0.15, HIGH + 0.65)
    ax.set_aspect("equal")
    ax.axis("off")


def _machines(ax: Any, busy: int) -> None:
    from matplotlib.patches import Rectangle

    for i in range(MACHINES):
        x, y = GATE + 0.22 + 0.6 * (i % 4), 0.8 - 0.62 * (i // 4)
        look = dict(facecolor=BLUE, hatch="////") if i < busy else dict(facecolor=PAPER)
        look |= dict(edgecolor=PAPER, gid="busy") if i < busy else dict(edgecolor=INK, gid="idle")
        ax.add_patch(Rectangle((x, y), 0.45, 0.45, linewidth=0.8, **look))


def _lorries(ax: Any, bucket: str) -> None:
    """A queue at the gate, a full road, or a single lorry."""
    places = {
        "compute": [5.42, 4.72, 4.02],
        "memory": [2.1, 2.8, 3.5, 4.2, 4.9],
        "overhead": [3.4],
    }[bucket]
    for x in places:
        _lorry(ax, x)
    word = {"compute": "standing", "memory": "on their way", "overhead": "on its way"}[bucket]
    ax.text((WALL + GATE) / 2, 0.88, word, ha="center", va="bottom", fontsize=SMALL, color=INK)
    if bucket != "compute":
        ax.annotate("", (GATE - 0.08, 0.4), xytext=(GATE - 0.42, 0.4), gid="moving",
                    arrowprops=dict(arrowstyle="->", color=INK, linewidth=1.3))  # fmt: skip


def _lorry(ax: Any, x: float) -> None:
    from matplotlib.patches import Circle, Rectangle

    ax.add_patch(Rectangle((x, 0.24), 0.36, 0.32, facecolor=VERMILLION, edgecolor=INK,
                           linewidth=0.8, gid="lorry"))  # fmt: skip
    ax.add_patch(Rectangle((x + 0.36, 0.24), 0.16, 0.22, facecolor=PAPER, edgecolor=INK,
                           linewidth=0.8))  # fmt: skip
    for wheel in (0.12, 0.4):
        ax.add_patch(Circle((x + wheel, 0.2), 0.07, facecolor=INK, edgecolor=INK))


def _dispatcher(ax: Any, waiting: int) -> None:
    """A desk with orders that wait for the factory, or none."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((DESK, 0), WIDE - DESK, 0.3, facecolor=GREY, edgecolor=INK))
    for i in range(waiting):
        corner = (DESK + 0.2 + 0.03 * (i % 2), 0.32 + 0.14 * i)
        look = dict(facecolor=PAPER, edgecolor=INK, linewidth=0.8, gid="order")
        ax.add_patch(Rectangle(corner, 0.8, 0.1, **look))
    ax.text((DESK + WIDE) / 2, HIGH + 0.08, "dispatcher", ha="center", va="bottom",
            fontsize=SMALL, color=INK)  # fmt: skip
    if waiting:
        ax.text(DESK + 1.12, 0.65, "orders\nwait", va="center", fontsize=SMALL, color=INK)
    else:
        ax.text((DESK + WIDE) / 2, 0.75, "writing the\nnext order", ha="center", va="center",
                fontsize=SMALL, color=INK)  # fmt: skip
