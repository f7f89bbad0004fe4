"""Showing a figure so that a reader who cannot see it gets the same message in words."""

from __future__ import annotations

import base64
import html
import io
import sys
from typing import Any

from helpers.output import in_notebook

DPI = 160  # drawn finer than shown, so that text stays sharp on dense screens


def alt_text(fig: Any) -> str:
    """Return the description that the ``draw_*`` functions left on the axes of ``fig``."""
    return " ".join(filter(None, (getattr(ax, "_in_words", "") for ax in fig.axes)))


def png(fig: Any, alt: str | None = None) -> bytes:
    """Return ``fig`` as PNG bytes, its description inside the file as well."""
    from PIL import Image, PngImagePlugin

    drawn, packed = io.BytesIO(), io.BytesIO()
    tight = None if fig.get_layout_engine() is not None else "tight"
    fig.savefig(
        drawn, format="png", dpi=DPI, facecolor=fig.get_facecolor(),
        bbox_inches=tight, pad_inches=0.15,
    )  # fmt: skip
    words = PngImagePlugin.PngInfo()
    words.add_itxt("Description", alt or alt_text(fig))
    # Few flat colours: a palette makes the file, and so the notebook, about a third as large.
    flat = Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    flat.save(packed, format="png", optimize=True, pnginfo=words)
    return packed.getvalue()


def show(fig: Any, alt: str | None = None) -> None:
    """Display ``fig`` once, with alternative text, and close it.

    ``alt`` replaces the description of the figure (:func:`alt_text`); without either: ValueError.
    Outside a notebook the description is printed.

    Front ends differ. The classic HTML export and some others take ``alt`` from the output's
    metadata; JupyterLab 4 and the default HTML export drop it, and an ``<img>`` of our own may lose
    its data where a site cleans HTML. So the picture is a plain PNG, which all show, and the words
    follow in a closed fold that a screen reader, or anyone, can open.
    """
    alt = alt or alt_text(fig)
    if not alt:
        raise ValueError("show(fig, alt) needs a sentence that says what the figure shows.")
    image = png(fig, alt)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)  # or the inline back end shows it again
    if not in_notebook():
        print(alt)
        return
    from IPython.display import display

    width = int.from_bytes(image[16:20], "big")  # PNG header: pixels across
    display(
        {"image/png": base64.b64encode(image).decode("ascii"), "text/plain": alt},
        raw=True,
        metadata={"image/png": {"alt": alt, "width": round(width * 100 / DPI)}},
    )
    fold = f"<details><summary>Figure in words</summary><p>{html.escape(alt)}</p></details>"
    display({"text/html": fold, "text/plain": f"Figure in words: {alt}"}, raw=True)
