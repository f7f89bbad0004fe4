"""The cost figures: right values in the right places, walls and limits marked, words for all."""

from __future__ import annotations

import itertools
import math

import matplotlib
import pytest

from helpers import inference, plots, roofline
from helpers.devices import get
from helpers.plots import Offer
from helpers.plots.cost import ROOFS
from tests.test_plots import texts

matplotlib.use("Agg")
LLAMA = inference.model()
THREE = [("L4", "l4", 0.8), ("A100 80 GB SXM", "a100_80_sxm", 2.5), ("H100 SXM", "h100_sxm", 3.95)]
GAINS = {
    "A": {"cuda graph": 6.3, "8 bits": 1.0, "batch x4": 4.0},
    "B": {"cuda graph": 1.0, "8 bits": 1.8, "batch x4": 2.9},
}


def offers(context=1024, prices=THREE):
    return [Offer(label, key, price, context) for label, key, price in prices]


def contexts():
    return [Offer(f"context {c:,}", "a100_80_sxm", 2.5, c) for c in (128, 1024, 2048)]


FIGURES = {
    "contexts": lambda: plots.draw_cost_curves(None, contexts(), device="A100 80 GB SXM"),
    "limit, L4 out": lambda: plots.draw_cost_curves(None, offers(), limit=0.03),
    "limit, all in": lambda: plots.draw_cost_curves(None, offers(2048), limit=0.06),
    "limit, all out": lambda: plots.draw_cost_curves(None, offers(), limit=0.001),
    "remedies": lambda: plots.draw_remedies(None, GAINS, device="three servers"),
    **{
        f"explorer {key} {batch} {context}": (
            lambda key=key, batch=batch, context=context: plots.draw_cost_explorer(
                key, 1.0, batch, context
            )
        )
        for key in ("t4", "l4", "a100_80_sxm", "h100_sxm")
        for batch in (1, 256)
        for context in (128, 4096)
    },
}


@pytest.fixture(scope="module")
def drawn():
    return {name: make() for name, make in FIGURES.items()}


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_covers_another_is_too_small_or_leaves_the_figure(drawn, name):
    fig = drawn[name].figure
    found = texts(fig)
    for (a, first), (b, second) in itertools.combinations(found, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert wide <= 1 or high <= 1, f"{a.get_text()!r} covers {b.get_text()!r}"
    for text, box in found:
        assert box.x0 >= 0 and box.x1 <= fig.bbox.width, text.get_text()
        assert box.y0 >= 0 and box.y1 <= fig.bbox.height, text.get_text()
        assert text.get_fontsize() >= 9, text.get_text()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_says_that_it_is_calculated_and_has_words(drawn, name):
    for ax in drawn[name].figure.axes:
        assert "calculated" in ax.get_title(loc="left")
    words = plots.alt_text(drawn[name].figure)
    assert len(words) > 20 and "nan" not in words and "inf " not in words


def line(ax, label):
    return next(one for one in ax.lines if one.get_label() == label)


def marks(ax, gid):
    return [tuple(map(float, (m.get_xdata()[0], m.get_ydata()[0])))
            for m in ax.lines if m.get_gid() == gid]  # fmt: skip


def test_a_curve_holds_the_costs_of_the_model_and_ends_at_the_wall(drawn):
    ax = drawn["contexts"]
    for offer in contexts():
        curve = line(ax, offer.label)
        wall = inference.largest_batch(LLAMA, get("a100_80_sxm").memory, offer.context)
        assert curve.get_xdata()[-1] == wall
        for batch, cost in zip(curve.get_xdata(), curve.get_ydata(), strict=True):
            step = inference.decode(
                LLAMA, roofline.datasheet(get("a100_80_sxm")), int(batch), offer.context
            )
            rate = batch / step.seconds
            assert cost == pytest.approx(inference.cost_per_million(2.5, rate))
    assert len(marks(ax, "wall")) == 3 and not marks(ax, "ring")
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "log scale" in ax.get_xlabel() and "log scale" in ax.get_ylabel()


def test_the_last_batch_within_the_limit_has_a_ring_and_the_rest_is_dotted(drawn):
    ax = drawn["limit, L4 out"]
    assert [x for x, _ in marks(ax, "ring")] == [89]
    slow = [one for one in ax.lines if one.get_linestyle() != "-" and len(one.get_xdata()) > 1]
    assert len(slow) == 2  # all of the L4, and the end of the A100
    labels = {text.get_text() for text in ax.texts}
    assert "L4\ntoo slow at any batch" in labels
    assert any(text.startswith("A100 80 GB SXM\nbatch 89: ") for text in labels)
    words = plots.alt_text(ax.figure)
    assert "Too slow for the limit at any batch" in words
    assert "Within 30 ms up to batch 89" in words


@pytest.mark.parametrize("limit", [0.02, 0.03, 0.06])
def test_usable_is_the_nearer_wall(limit):
    for offer in offers():
        usable, wall = offer.usable(LLAMA, limit), offer.wall(LLAMA)
        assert usable <= wall
        if usable:
            assert offer.at(LLAMA, usable)[1] <= limit
        if usable < wall:
            assert offer.at(LLAMA, usable + 1)[1] > limit


@pytest.mark.parametrize("price", [0, -1, math.nan, math.inf])
def test_an_offer_without_price_or_room_is_named_and_not_drawn(price):
    bad = Offer("nobody", "a100_80_sxm", price, 1024)
    full = Offer("no room", "t4", 1.0, 16384)
    ax = plots.draw_cost_curves(None, [*offers(), bad, full])
    assert "not drawn: nobody, no room" in ax.get_title(loc="left").replace("\n", " ")
    assert len(marks(ax, "wall")) == 3
    alone = plots.draw_cost_curves(None, [bad])
    assert "not drawn" in plots.alt_text(alone.figure)


def test_one_to_seven_offers_can_be_kept_apart():
    with pytest.raises(ValueError, match="1 to 7"):
        plots.draw_cost_curves(None, [])
    with pytest.raises(ValueError, match="1 to 7"):
        plots.draw_cost_curves(None, offers() * 3)


def test_the_explorer_marks_the_batch_in_both_pictures_and_the_limit():
    ax = plots.draw_cost_explorer("l4", 0.8, 4, 1024)
    top, low = ax.figure.axes
    step = inference.decode(LLAMA, roofline.datasheet(get("l4")), 4, 1024).seconds
    cost = inference.cost_per_million(0.8, 4 / step)
    assert marks(top, "chosen") == [(4, pytest.approx(cost))]
    assert marks(low, "chosen") == [(4, pytest.approx(step * 1e3))]
    assert [m.get_ydata()[0] for m in low.lines if m.get_gid() == "limit"] == [50]
    assert "slower than the limit" in plots.alt_text(ax.figure)
    assert ROOFS in ax.get_title(loc="left").replace("\n", " ")
    assert [m.get_xdata()[0] for m in top.lines if m.get_gid() == "wall"] == [16]


def test_a_batch_beyond_the_memory_wall_stops_there_and_says_so():
    ax = plots.draw_cost_explorer("a100_80_sxm", 2.5, 256, 4096)
    assert marks(ax, "chosen")[0][0] == 27
    assert any(t.get_text().startswith("Only 27 fit") for t in ax.texts)


@pytest.mark.parametrize(("price", "context", "why"), [(1.0, 4096, "Not one sequence of 4,096"),
                                                       (math.nan, 128, "No price")])  # fmt: skip
def test_an_explorer_with_nothing_to_draw_says_why(price, context, why):
    ax = plots.draw_cost_explorer("t4", price, 1, context)
    assert why in plots.alt_text(ax.figure)


def test_more_for_the_same_rent_is_never_dearer():
    costs = [marks(plots.draw_cost_explorer("t4", price, 1, 128), "chosen")[0][1]
             for price in (0.5, 1.0, 2.0)]  # fmt: skip
    assert costs == pytest.approx([costs[0], 2 * costs[0], 4 * costs[0]])


def test_remedies_have_the_length_of_what_is_left():
    ax = plots.draw_remedies(None, GAINS, device="three servers")
    widths = {bar.get_gid(): bar.get_width() for bar in ax.patches}
    assert widths["A, batch x4"] == pytest.approx(25)
    assert widths["B, cuda graph"] == pytest.approx(100)
    labels = [text.get_text() for text in ax.texts]
    assert "÷ 6.3" in labels and labels.count("no change") == 2
    assert len({bar.get_hatch() for bar in ax.patches}) == 3


def test_a_remedy_that_is_unknown_or_makes_it_dearer_is_still_told():
    odd = {"A": {"graph": math.nan, "8 bits": 0.5}, "B": {"8 bits": 2.0}}
    ax = plots.draw_remedies(None, odd, device="x")
    assert "unknown: A, graph" in ax.get_title(loc="left").replace("\n", " ")
    assert max(bar.get_width() for bar in ax.patches) == 200 and ax.get_xlim()[1] > 200
    with pytest.raises(ValueError, match="1 to 4 remedies"):
        plots.draw_remedies(None, {"A": {}}, device="x")


def test_the_label_of_the_limit_keeps_off_the_curve():
    for key, price, context in (("a100_80_sxm", 2.5, 128), ("l4", 0.8, 4096), ("t4", 0.6, 128)):
        low = plots.draw_cost_explorer(key, price, 1, context).figure.axes[1]
        low.figure.draw_without_rendering()
        label = next(t for t in low.texts if t.get_text().startswith("limit"))
        box, curve = label.get_window_extent(), low.lines[0]
        for x, y in low.transData.transform(list(zip(*curve.get_data(), strict=True))):
            assert not (box.x0 < x < box.x1 and box.y0 < y < box.y1), key


def test_the_explorer_bends_where_the_arithmetic_takes_over():
    curve = plots.draw_cost_explorer("a100_80_sxm", 2.5, 1, 128).lines[0]
    flat = [b for b, c in zip(*curve.get_data(), strict=True) if c < 1.001 * curve.get_ydata()[-1]]
    assert 150 < min(flat) < 190
