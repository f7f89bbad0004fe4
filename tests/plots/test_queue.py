"""The two figures of notebook 05: the arithmetic of the queue, and the table of benchmarks."""

from itertools import pairwise

import pytest

from helpers import plots
from helpers.plots.queue import GRAPH

US = 1e-6


def lanes(events, lane):
    return [e for e in events if e.lane == lane]


def shown_and_done(kernel, launch, ending, n=6):
    events = plots.queue_events(kernel, launch, ending, n)
    return [max(e.end for e in lanes(events, lane)) / US for lane in ("CPU", "GPU")]


def test_long_kernels_hide_the_launches():
    shown, done = shown_and_done(60 * US, 20 * US, "never")
    assert (shown, done) == (pytest.approx(6 * 20), pytest.approx(20 + 6 * 60))


def test_short_kernels_wait_for_the_launches():
    shown, done = shown_and_done(2 * US, 100 * US, "never")
    assert (shown, done) == (pytest.approx(600), pytest.approx(602))
    events = plots.queue_events(2 * US, 100 * US, "never")
    assert plots.idle_share(events) == pytest.approx(5 * 98 / 502)


def test_waiting_at_the_end_shows_the_truth_and_after_each_costs_the_overlap():
    at_end = shown_and_done(60 * US, 20 * US, "at the end")
    each = shown_and_done(60 * US, 20 * US, "after each kernel")
    assert at_end == pytest.approx([380, 380])
    assert each == pytest.approx([6 * 80, 6 * 80])


def test_a_graph_pays_one_launch():
    shown, done = shown_and_done(10 * US, 40 * US, GRAPH)
    assert shown == done == pytest.approx(40 + 60)
    assert len([e for e in plots.queue_events(10 * US, 40 * US, GRAPH) if e.name == "graph"]) == 1


def test_kernels_never_overlap_nor_start_before_their_launch():
    for kernel in (2, 20, 60, 200):
        for launch in (2, 20, 100):
            for ending in plots.QUEUE_ENDINGS:
                events = plots.queue_events(kernel * US, launch * US, ending)
                runs = lanes(events, "GPU")
                assert len(runs) == 6
                assert all(a.end <= b.start + 1e-12 for a, b in pairwise(runs))
                launches = [e for e in lanes(events, "CPU") if not e.waits]
                for at, run in enumerate(runs):
                    assert run.start >= launches[min(at, len(launches) - 1)].end - 1e-12


def test_nonsense_is_refused():
    for wrong in ((0, 1, "never", 6), (1, 0, "never", 6), (1, 1, "never", 0), (1, 1, "later", 6)):
        with pytest.raises(ValueError):
            plots.queue_events(*wrong)
    with pytest.raises(ValueError):
        plots.draw_benchmarks(None, [], "measured", "T4", title="none")


def headline(ax):
    return next(t.get_text() for t in ax.texts if t.get_gid() == "headline")


def test_the_headline_says_what_the_stopwatch_shows():
    ax = plots.draw_queue(None, 60 * US, 20 * US, "never")
    assert headline(ax) == "The stopwatch shows 120 µs; the work takes 380 µs"
    assert ax.get_title(loc="left").startswith("any GPU with such times · calculated")
    stop = next(line for line in ax.lines if line.get_gid() == "stop")
    assert stop.get_xdata()[0] == pytest.approx(120)
    assert "truth" in headline(plots.draw_queue(None, 60 * US, 20 * US, "at the end"))
    said = plots.alt_text(ax.figure)
    assert "120 µs" in said and "idle 0 %" in said


def test_no_label_leaves_the_figure():
    for kernel, launch, ending in ((2, 100, "never"), (200, 2, "never"), (2, 100, "at the end")):
        ax = plots.draw_queue(None, kernel * US, launch * US, ending)
        ax.figure.draw_without_rendering()
        inside = ax.figure.bbox
        for text in ax.texts:
            box = text.get_window_extent()
            assert box.x0 >= inside.x0 - 1 and box.x1 <= inside.x1 + 1, text.get_text()


def test_the_table_shows_code_and_number_of_each_row():
    rows = [plots.Benchmark("A", "one()\ntwo()", "3 ms"), plots.Benchmark("B", "three()", "9 GB/s")]
    ax = plots.draw_benchmarks(None, rows, "simulated", "Tesla T4", title="Two")
    texts = [t.get_text() for t in ax.texts]
    for row in rows:
        assert {row.letter, row.code, row.prints} <= set(texts)
    assert "simulated" in ax.get_title(loc="left")
    assert "A: one() / two() prints 3 ms." in plots.alt_text(ax.figure)
    assert min(t.get_fontsize() for t in ax.texts) >= 9
