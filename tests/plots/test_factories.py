"""The three factory pictures: each shows its bucket, and none says its name."""

import pytest
from matplotlib.text import Text

from helpers import plots
from helpers.checks.cases import buckets_of


def gids(ax, gid):
    return [patch for patch in ax.patches if patch.get_gid() == gid]


@pytest.mark.parametrize("picture", range(1, 7))
def test_each_picture_shows_its_bucket(picture):
    axes = plots.draw_factories(None, picture)
    for ax, (letter, bucket) in zip(axes, buckets_of(picture).items(), strict=True):
        busy, idle, lorries, orders = (
            len(gids(ax, gid)) for gid in ("busy", "idle", "lorry", "order")
        )
        assert busy + idle == 8
        assert (idle == 0) == (bucket == "compute")
        assert (orders == 0) == (bucket == "overhead")
        assert (lorries >= 5) == (bucket == "memory")
        assert [t.get_text() for t in ax.texts if t.get_gid() == "letter"] == [letter]


def test_no_picture_says_the_name_of_its_bucket():
    axes = plots.draw_factories(None, 3)
    figure = axes[0].figure
    words = " ".join(t.get_text() for t in figure.findobj(Text)) + plots.alt_text(figure)
    assert not [w for w in ("memory", "compute", "overhead", "bound") if w in words.lower()]
    assert all(f"{letter}:" in words for letter in "ABC")
    assert all(t.get_fontsize() >= 9 for t in figure.findobj(Text) if t.get_text())


def test_the_words_follow_the_picture():
    said = plots.alt_text(plots.draw_factories(None, 5)[0].figure)
    first, second, third = (said.index(f" {letter}: ") for letter in "ABC")
    assert first < said.index("desk is empty") < second < said.index("all machines work") < third


@pytest.mark.parametrize("picture", [0, 7, "A", None])
def test_another_picture_is_refused(picture):
    with pytest.raises(ValueError, match="pictures 1 to 6"):
        plots.draw_factories(None, picture)
