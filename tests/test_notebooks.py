"""Every notebook, solved and untouched, as learners run it: in order, twice, in pieces, wrongly."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
import torch

from helpers import checks, lab, simgpu
from helpers.output import NotebookError
from tests import cells

CARDS = ("a100_80_sxm", "h100_sxm", "l4")
everywhere = pytest.mark.parametrize("stem", cells.STEMS)


@pytest.fixture(autouse=True)
def no_card_left():
    yield
    if simgpu.active():
        simgpu.active().deactivate()


def exercises(stem):
    return checks.exercises(stem[:2])


def test_all_nine_are_there_and_worth_about_a_hundred_points():
    assert len(cells.STEMS) == 9
    books = {stem[:2]: cells.notebook(stem, "solution") for stem in cells.STEMS}
    automatic = sum(sum(cells.points(nb).values()) for nb in books.values())
    by_hand = {number: p for number, nb in books.items() if (p := cells.manual_points(nb))}
    assert 90 <= automatic + sum(by_hand.values()) <= 110
    assert list(by_hand) == ["06"]


@everywhere
def test_each_notebook_has_six_exercises_and_code_to_write(stem):
    names = exercises(stem)
    assert list(cells.points(cells.notebook(stem, "solution"))) == names
    assert len(names) >= 6
    assert any(checks.find(name).inputs for name in names)


@everywhere
def test_solved_scores_full_marks(stem, tmp_path, monkeypatch):
    found = cells.solve(stem, monkeypatch, tmp_path)
    assert found.raised == []
    assert {k: v for k, v in found.states.items() if v != ("right", 1.0)} == {}, found.text[-3000:]
    assert list(found.states) == exercises(stem)


@everywhere
def test_untouched_is_not_started_and_measures_nothing(stem, tmp_path, monkeypatch):
    cells.fresh(monkeypatch, tmp_path)
    found = cells.run(cells.code(cells.notebook(stem, "student")), monkeypatch)
    assert found.raised == []
    assert {state for state, _ in found.states.values()} == {"not_started"}
    assert list(found.states) == exercises(stem)


@pytest.mark.slow
@everywhere
def test_each_cell_run_twice_changes_nothing(stem, tmp_path, monkeypatch):
    cells.fresh(monkeypatch, tmp_path)
    twice = [cell for cell in cells.code(cells.notebook(stem, "solution")) for _ in range(2)]
    found = cells.run(twice, monkeypatch)
    assert found.raised == []
    assert {k: v for k, v in found.states.items() if v != ("right", 1.0)} == {}


@pytest.mark.slow
@everywhere
def test_a_kernel_restarted_half_way_loses_nothing(stem, tmp_path, monkeypatch):
    cells.fresh(monkeypatch, tmp_path)
    whole = cells.code(cells.notebook(stem, "solution"))
    cells.run(whole[: len(whole) // 2], monkeypatch)
    cells.restart(monkeypatch)
    found = cells.run(whole, monkeypatch)
    assert found.raised == []
    assert {k: v for k, v in found.states.items() if v != ("right", 1.0)} == {}


@pytest.mark.slow
@everywhere
def test_a_cell_run_before_its_predecessors_says_one_sentence(stem, tmp_path, monkeypatch):
    """Each cell alone after the setup cell works, lacks a name, or is told what to do."""
    cells.fresh(monkeypatch, tmp_path)
    setup, *rest = cells.code(cells.notebook(stem, "solution"))
    start: dict = {"__name__": "__main__"}
    assert cells.run([setup], monkeypatch, start).raised == []
    for cell in rest:
        found = cells.run([cell], monkeypatch, dict(start))
        for name, error in found.raised:
            assert isinstance(error, (NameError, NotebookError)), (name, error)


@pytest.mark.slow
@everywhere
def test_no_odd_answer_stops_anything_or_is_right(stem, tmp_path, monkeypatch):
    """After everything was done rightly, so that nothing hides behind a missing measurement."""
    cells.solve(stem, monkeypatch, tmp_path)

    class Hostile:
        def __eq__(self, other):
            return True

        def __repr__(self):
            raise RuntimeError("no")

        __hash__ = None

    odd = [
        None, "about 12 ms", "", float("nan"), float("inf"), -1e30, 10**400, True, b"x", {}, [],
        {"a": 1}, [1, 2, 3], np.zeros(3), torch.zeros(2, 2), object(), Hostile(), set(), 1j,
        torch.ones(3, device="cuda"), torch.zeros(2**24, device="cuda"), lambda: 1, print,
        lambda *a: a, lambda *a: 1 / 0, lambda *a, **k: None, type, [[[1]]], "a" * 10**6,
    ]  # fmt: skip
    for exercise in exercises(stem):
        for answer in odd:
            said = io.StringIO()
            seen: list = []
            monkeypatch.setattr(lab, "publish", seen.append)
            with contextlib.redirect_stdout(said):
                lab.check(exercise, answer)
            verdict = seen[-1][lab.CHECK_MIME]
            about = (exercise, type(answer).__name__, verdict)
            assert verdict["state"] in ("not_yet", "error", "cannot_tell", "not_started"), about
            assert "Traceback" not in verdict["message"] + said.getvalue(), about
            assert len(verdict["message"]) < 2000, about


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("card", CARDS)
def test_solved_scores_full_marks_on_other_cards(stem, card, tmp_path, monkeypatch):
    found = cells.solve(stem, monkeypatch, tmp_path, BRRR_GPU=card)
    assert found.raised == []
    assert {k: v for k, v in found.states.items() if v != ("right", 1.0)} == {}, found.text[-3000:]


@pytest.mark.slow
def test_expectations_differ_between_cards(tmp_path, monkeypatch):
    """The same solutions, other numbers in the text: nothing expects a T4."""
    for stem in cells.STEMS[:8]:
        texts = set()
        for card in ("t4", *CARDS):
            found = cells.solve(stem, monkeypatch, tmp_path / stem / card, BRRR_GPU=card)
            texts.add("".join(check["message"] for check in found.checks.values()))
        assert len(texts) == 4, stem


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("version", cells.VERSIONS)
def test_on_the_cpu_what_is_absent_cannot_be_told(stem, version, tmp_path, monkeypatch):
    cells.fresh(monkeypatch, tmp_path, BRRR_DEVICE="cpu")
    found = cells.run(cells.code(cells.notebook(stem, version)), monkeypatch)
    assert found.raised == []
    allowed = {"right", "cannot_tell"} if version == "solution" else {"not_started"}
    states = {k: state for k, (state, _) in found.states.items()}
    assert {k: s for k, s in states.items() if s not in allowed} == {}, found.text[-3000:]
    assert list(states) == exercises(stem)
