"""The card, the ladder and the time to move: the figures say what the facts say."""

import math

import pytest

from helpers import devices, levels, plots
from helpers.facts import fact
from helpers.plots import memory

CARDS = [device.key for device in devices.all_devices()]


def said(ax):
    return plots.alt_text(ax.figure)


def words(ax):
    return [t.get_text() for t in ax.texts]


# ---------------------------------------------------------------- levels


FEW = ("t4", "a100_80_sxm", "h100_sxm", "rtx_4090")
SLOWLY = [k if k in FEW else pytest.param(k, marks=pytest.mark.slow) for k in CARDS]


@pytest.mark.parametrize("key", SLOWLY)
def test_every_known_card_has_seven_levels_that_get_slower(key):
    steps = levels.levels(devices.get(key))
    rates = [step.rate for step in steps]
    assert len(steps) == 7 and rates == sorted(rates, reverse=True)
    assert all(step.known in levels.KNOWN and step.why for step in steps)
    assert [s.size for s in steps if s.name.startswith("host") or s.name == "disk"] == [None] * 3


def test_the_levels_of_a_t4_are_worked_out_from_its_parts():
    by = {s.name: s for s in levels.levels(devices.get("t4"), host=12.7e9)}
    assert by["registers"].size == 40 * 65536 * 4
    assert by["registers"].rate == pytest.approx(8.1e12 / 2 * 16, rel=0.01)
    assert by["shared memory, L1"].size == 40 * 64 * 1024
    assert by["shared memory, L1"].rate == pytest.approx(40 * 128 * 1.59e9)
    assert by["L2"].size == 4 * 2**20 and by["L2"].known == "estimated"
    assert by["device memory"].rate == 320e9 and by["device memory"].known == "stated"
    assert by["host, pinned"].rate == 15.75e9 and by["host, pinned"].size == 12.7e9
    assert by["disk"].rate == pytest.approx(fact("model.llama2_7b.weights").value / 6)


def test_a_published_l2_rate_is_taken_and_called_so():
    l2 = levels.levels(devices.get("a100_80_sxm"))[2]
    assert (l2.rate, l2.known) == (5.4e12, "published")


def test_a_machine_that_does_not_tell_its_memory_has_none(monkeypatch):
    monkeypatch.delattr(levels.os, "sysconf")
    assert levels.host_memory() is None


def test_this_machine_tells_a_plausible_memory():
    found = levels.host_memory()
    assert found is None or 2**28 < found < 2**46


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize("key", ["t4", "l4", "a100_80_sxm", "h100_sxm", "p100_pcie"])
def test_the_card_shows_its_own_figures(key):
    card = devices.get(key)
    ax = plots.draw_card(None, card)
    text = " ".join(words(ax))
    assert f"{card.sms} SMs" in text and f"{card.memory / 1e9:,.0f} GB" in text
    assert plots.style.quantity(card.bandwidth, "B/s", 4) in text
    assert plots.style.quantity(card.peak["fp16"], "FLOP/s") in said(ax)
    assert card.name in said(ax) and "calculated" in said(ax)


def test_the_ladder_has_a_dot_per_known_figure_and_says_how_it_is_known():
    left = plots.draw_memory_ladder(None, "t4", host=12.7e9)
    right = left.figure.axes[1]
    assert "10.5 MB" in words(left) and "not of the card" in words(left)
    assert {"65.1 TB/s", "320 GB/s", "15.8 GB/s"} <= set(words(right))
    assert left.get_xscale() == right.get_xscale() == "log"
    assert "order of magnitude" in said(left) and "datasheet or standard" in said(left)
    assert "logarithmic" in said(left)
    assert {t.get_text() for t in left.figure.legends[0].get_texts()} == {
        "order of magnitude", "datasheet or standard", "published measurement",
    }  # fmt: skip


def test_the_ladder_without_a_host_memory_names_no_size_for_it():
    left = plots.draw_memory_ladder(None, "h100_sxm")
    assert words(left).count("not of the card") == 3


def test_the_ladder_can_be_drawn_into_a_pair_of_axes():
    fig, pair = plots.figure(4, columns=2)
    assert plots.draw_memory_ladder(pair, "l4") is pair[0]
    assert not fig.legends


def test_the_time_to_move_is_bytes_over_rate_and_compared():
    ax = plots.draw_move_time(None, 13.5e9, "t4")
    text = words(ax)
    assert any(t == "42.2 ms" for t in text)  # 13.5 / 320
    assert any(t.startswith("857 ms, ×20") for t in text)  # 13.5 / 15.75
    assert any("holds only 4.19 MB" in t for t in text)
    assert "×: times as long as from device memory" in said(ax)


def test_a_level_that_is_too_small_is_hollow():
    ax = plots.draw_move_time(None, 3e6, "t4")
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == plots.style.PAPER]
    assert len(hollow) == 1  # shared memory holds 2.6 MB; registers and L2 hold more


def test_compared_with_another_level_the_factors_follow():
    ax = plots.draw_move_time(None, 1e6, "a100_80_sxm", beside="host, pinned")
    assert any("1/65" in t for t in words(ax))  # 2039 / 31.5


@pytest.mark.parametrize("nbytes", [0, -1, math.nan])
def test_no_bytes_are_refused(nbytes):
    with pytest.raises(ValueError, match="above zero"):
        plots.draw_move_time(None, nbytes, "t4")


def test_an_unknown_level_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="registers"):
        plots.draw_move_time(None, 1.0, "t4", beside="tape")


@pytest.mark.parametrize("key", CARDS)
def test_every_known_card_can_be_drawn(key):
    for ax in (plots.draw_card(None, key), plots.draw_memory_ladder(None, key),
               plots.draw_move_time(None, 140e9, key)):  # fmt: skip
        assert plots.png(ax.figure)


@pytest.mark.parametrize(
    ("factor", "said"),
    [(20.3, "×20"), (10854.0, "×11,000"), (2.61, "×2.6"), (1 / 238305, "1/240,000"), (0.25, "1/4")],
)
def test_a_factor_between_levels_pretends_no_more_than_two_digits(factor, said):
    assert memory._times(factor) == said


def test_the_marks_of_the_move_times_are_explained():
    ax = plots.draw_move_time(None, 10**9, "t4")
    (legend,) = ax.figure.legends
    assert {t.get_text() for t in legend.get_texts()} == set(memory._MEANING.values())
