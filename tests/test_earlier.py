"""What other notebooks left behind: the summary table and the earlier predictions."""

from __future__ import annotations

import pytest

from helpers import earlier, evidence
from helpers.evidence import Evidence, Record

ROW = {"memory": "cures", "compute": "nothing", "overhead": "helps"}


def kept(number: str, *records: Record) -> Evidence:
    made = Evidence(f"{number}_topic", "test", 1)
    for record in records:
        made.add(record)
    return made


def answer(row, state="right", exercise="04-14"):
    value = {"answer": row, "state": state, "fraction": 1.0}
    return Record(exercise, "answer", value)


def pair(exercise, label, guess, came, unit="ms"):
    yield Record(exercise, "prediction", guess, label=label, unit=unit)
    yield Record(exercise, "outcome", came, label=label, unit=unit, origin="simulated")


def test_right_rows_stand_in_the_order_of_the_course():
    found = {"04": kept("04", answer(ROW)), "01": kept("01", answer(ROW | {"memory": "b"}))}
    lines = earlier.summary_table(found).splitlines()
    assert lines[0].split() == ["memory", "compute", "overhead"]
    assert [line[:2] for line in lines[1:]] == ["01", "04"]
    assert "what fusion does" in lines[2] and lines[2].split()[-3:] == ["cures", "nothing", "helps"]
    starts = {
        line.index(word) for line, word in zip(lines[1:], ("nothing", "nothing"), strict=True)
    }
    assert len(starts) == 1  # columns stand below each other


@pytest.mark.parametrize(
    "record",
    [
        answer(ROW, "not_yet"),
        answer({"memory": "cures"}),
        answer(dict.fromkeys(ROW, 1)),
        answer("memory"),
        Record("04-14", "answer", "memory"),
    ],
)
def test_what_is_no_right_row_is_left_out(record):
    assert "no row yet" in earlier.summary_table({"04": kept("04", record)})


def test_the_newest_right_row_counts():
    other = ROW | {"memory": "helps"}
    found = {"04": kept("04", answer(other), answer(ROW), answer(other, "not_yet"))}
    assert "cures" in earlier.summary_table(found)


def test_predictions_are_shown_with_what_came_and_how_far_off():
    found = {
        "04": kept(
            "04", *pair("04-4", "", 4.0, 2.0), *pair("04-10", "one launch", "about half", 1.0)
        ),
        "01": kept("01", *pair("01-3", "copy", 100.0, 250.0, "GB/s")),
    }
    lines = earlier.predictions_table(found).splitlines()
    assert [line[:5] for line in lines] == ["01-3 ", "04-4 ", "04-10"]
    assert "off by x2.50" in lines[0] and "GB/s" in lines[0] and "copy" in lines[0]
    assert "off by x2.00" in lines[1]
    assert "'about half'" in lines[2] and "x1.00" in lines[2]
    assert all("(simulated)" in line for line in lines)


def test_a_prediction_without_an_outcome_and_a_forged_outcome_are_left_out():
    lonely = Record("04-4", "prediction", 4.0, unit="ms")
    forged = [
        Record("04-6", "prediction", 4.0, unit="ms"),
        Record("04-6", "outcome", "fast", unit="ms"),
        Record("04-9", "outcome", 3.0, unit="ms"),
    ]
    said = earlier.predictions_table({"04": kept("04", lonely, *forged)})
    assert "No earlier prediction is at hand" in said


def test_an_outcome_of_zero_is_infinitely_far_off():
    said = earlier.predictions_table({"04": kept("04", *pair("04-4", "", 4.0, 0.0))})
    assert "off by xinf" in said


def test_files_beside_are_read_and_damaged_ones_told(tmp_path, capsys):
    evidence.write(kept("04", answer(ROW)), tmp_path / "04_topic.evidence.json")
    (tmp_path / "05_topic.evidence.json").write_text("{", "utf-8")
    (tmp_path / "notes.evidence.json").write_text("{", "utf-8")
    found = earlier.beside(tmp_path)
    assert list(found) == ["04"]
    said = capsys.readouterr().out
    assert "05_topic" in said and "left out" in said and "notes" not in said


def test_records_changed_by_hand_do_not_count(tmp_path):
    made = kept("04", answer(ROW))
    path = tmp_path / "04_topic.evidence.json"
    evidence.write(made, path)
    path.write_text(path.read_text("utf-8").replace("cures", "cured"), "utf-8")
    assert "no row yet" in earlier.summary_table(earlier.beside(tmp_path))
