"""``python -m helpers.plots DIRECTORY`` draws the pictures that the README shows."""

from __future__ import annotations

import sys
from pathlib import Path

from helpers.plots import draw_trips_pair, png


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m helpers.plots DIRECTORY", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fusion.png"
    path.write_bytes(png(draw_trips_pair()[0].figure))
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
