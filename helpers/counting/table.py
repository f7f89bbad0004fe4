"""Private: counted work as a small aligned table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.counting import Op, Work

ROWS = 12
_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def si(value: float, unit: str) -> str:
    """1.61e9, "B" -> "1.61 GB". Prefixes are powers of 1000."""
    for prefix, scale in _PREFIXES:
        if abs(value) >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def table(work: Work) -> str:
    """One row per operation, most bytes first; totals above, what is missing below."""
    groups = work.by_name()
    rows = [op for op in groups if op.kind != "view"]
    views = sum(op.calls for op in groups if op.kind == "view")
    total = work.bytes_unfused
    lines = [
        f"{work.kernels} operation{'s' * (work.kernels != 1)} and {views} view"
        f"{'s' * (views != 1)}, {si(work.flops, 'FLOP')}",
        f"bytes unfused {si(total, 'B')} ({work.intensity:.4g} FLOP/B), "
        f"ideal {si(work.bytes_ideal, 'B')} ({work.ideal_intensity:.4g} FLOP/B)",
    ]
    cells = [("operation", "calls", "shapes", "dtype", "FLOPs", "bytes", "share")]
    cells += [_row(op, total) for op in rows[:ROWS]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    if rows:
        for row in cells:
            padded = [
                cell.ljust(width) if column in (0, 2, 3) else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
    if len(rows) > ROWS:
        rest = sum(op.bytes for op in rows[ROWS:])
        lines.append(f"and {len(rows) - ROWS} more kinds of operation, {si(rest, 'B')}")
    unknown = sorted({_short(op.name) for op in rows if op.kind == "other" and not op.flops})
    if unknown:
        lines.append(f"no FLOP rule for {', '.join(unknown)}: counted as 0 FLOP")
    return "\n".join(lines)


def _row(op: Op, total: int) -> tuple[str, ...]:
    shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in op.shapes)
    shapes = shapes if len(shapes) <= 40 else shapes[:37] + "..."
    share = f"{op.bytes / total:.1%}" if total else "-"
    return (
        _short(op.name), str(op.calls), shapes, op.dtype, si(op.flops, "FLOP"),
        si(op.bytes, "B"), share,
    )  # fmt: skip


def _short(name: str) -> str:
    return name.removeprefix("aten.").removesuffix(".default")
