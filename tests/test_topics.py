"""The self-test's result by topic, right at the first attempt, and the record of predictions."""

import dataclasses
from pathlib import Path

import pytest

from helpers import checks, earlier, evidence, lab, plots, session, simgpu, standing, topics
from helpers.checks import nb09
from helpers.evidence import Evidence, Record
from staff.course import load
from tests.checks.test_nb09 import learner, solution

ROOT = Path(__file__).parent.parent
STEM = "09_self_test"


def answer(context, exercise, value, state=None):
    """Put an answer into the learner's evidence as lab.check does."""
    given = evidence.plain(value)
    state = state or checks.grade(exercise, given, context).state
    record = Record(exercise, "answer", {"answer": given, "state": state, "fraction": 0.0})
    return context.evidence.add(record)


def rows(context):
    return {t.notebook: t for t in topics.by_topic(context.evidence, context)}


@pytest.fixture
def context():
    return learner()


def test_stems_are_those_of_the_course():
    assert list(topics.STEMS.values()) == [n.stem for n in load(ROOT).notebooks][:8]


def test_nothing_answered_points_nowhere(context):
    for topic in rows(context).values():
        assert (topic.right, topic.answered, topic.repeat) == (0, 0, False)
        assert topic.verdict("LINK") == "not answered yet"


def test_all_right_holds_everywhere(context):
    for exercise, value in solution(context).items():
        answer(context, exercise, value)
    for topic in rows(context).values():
        assert topic.right == topic.answered == topic.all > 0 and not topic.repeat
        assert topic.verdict("LINK") == f"{topic.all} of {topic.all}: it holds"


def test_half_answered_is_right_for_that_half(context):
    good = solution(context)
    answer(context, "09-1", good["09-1"])
    answer(context, "09-2", good["09-2"] | {"fused": good["09-2"]["twice"]})
    answer(context, "09-7", good["09-7"])
    answer(context, "09-8", ...)
    found = rows(context)
    assert found["06"].verdict("LINK") == "1 of 1: it holds"
    assert found["04"].repeat and found["04"].verdict("LINK") == "0 of 1: repeat LINK"
    assert not found["02"].repeat
    assert found["02"].verdict("LINK") == f"1 of {found['02'].all}, not all answered yet"
    for notebook in ("01", "03", "05", "07", "08"):
        assert found[notebook].verdict("LINK") == "not answered yet"


def test_the_mistake_says_which_of_two_notebooks(context):
    good = solution(context)
    answer(context, "09-4", good["09-4"] | {"rows": 4096 / 3})
    found = rows(context)
    assert found["07"].repeat and not found["03"].repeat
    assert (found["03"].right, found["03"].answered) == (1, 1)
    answer(context, "09-4", good["09-4"] | {"pointwise": 0.5})
    found = rows(context)
    assert found["03"].repeat and not found["07"].repeat
    assert found["07"].answered == 0  # not known yet: the check tells the first mistake only
    answer(context, "09-4", None)
    assert all(not topic.repeat for topic in list(rows(context).values())[:2])
    assert rows(context)["03"].repeat and rows(context)["07"].repeat


def test_a_time_that_cannot_be_points_to_the_stopwatch():
    for seed in range(40):
        context = learner(seed)
        for exercise in ("09-9", "09-10", "09-11"):
            if solution(context)[exercise]["next"] != "time it again":
                continue
            answer(context, exercise, solution(context)[exercise] | {"verdict": "memory"})
            found = rows(context)
            assert found["05"].repeat and not found["02"].repeat
            return
    raise AssertionError("no learner with such a case")


def test_the_newest_answer_counts(context):
    good = solution(context)
    answer(context, "09-1", good["09-1"] | {"test": "more rows"})
    assert rows(context)["06"].repeat
    answer(context, "09-1", good["09-1"])
    assert not rows(context)["06"].repeat and rows(context)["06"].right == 1
    assert rows(context)["06"].verdict("LINK").endswith("have another look at LINK")


def test_placeholders_before_the_first_attempt_are_no_stumble(context):
    good = solution(context)
    for value in (..., good["09-1"]):
        answer(context, "09-1", value)
    assert rows(context)["06"].verdict("LINK") == "1 of 1: it holds"


def test_a_judge_with_another_seed_reads_the_learners_function_as_it_was(context):
    answer(context, "09-8", solution(context)["09-8"])
    assert rows(dataclasses.replace(context, seed=context.seed + 1))["02"].right == 1


def test_a_function_that_failed_points_to_its_notebook(context):
    answer(context, "09-8", [{"error": "NameError: x"}] * 6)
    assert rows(context)["02"].repeat


def test_a_record_without_an_answer_is_not_answered(context):
    context.evidence.add(Record("09-1", "answer", "odd"))
    context.evidence.add(Record("09-2", "answer", {"state": "right"}))
    assert rows(context)["06"].answered == rows(context)["04"].answered == 0


def test_links_open_the_notebooks_here_or_on_colab(context):
    answer(context, "09-1", solution(context)["09-1"] | {"test": "more rows"})
    found = topics.by_topic(context.evidence, context)
    assert '<a href="06_batch_size.ipynb">' in topics.as_html(found, "")
    base = load(ROOT).values()["colab"]
    assert f'<a href="{load(ROOT).colab_link("06_batch_size")}">' in topics.as_html(found, base)
    assert topics.as_html(found, "").count("<a ") == 1
    assert "repeat 06_batch_size" in topics.as_text(found)


def test_the_first_attempt_counts_not_the_last(context):
    for exercise, states in {
        "09-1": ["not_started", "not_yet", "right"],
        "09-2": ["not_started", "right", "not_yet"],
        "09-3": ["not_started"],
        "09-8": ["error", "right"],
    }.items():
        for state in states:
            answer(context, exercise, 1, state)
    ids = checks.exercises("09")
    assert topics.first_try(context.evidence, ids) == (1, 3)


def test_a_first_attempt_that_was_right_then_is_no_stumble_now(context):
    """An update of the course may ask for other entries than the kept answer has."""
    answer(context, "09-5", {"bucket": "overhead", "older": 1.0}, "right")
    answer(context, "09-5", solution(context)["09-5"])
    assert rows(context)["08"].verdict("LINK") == "1 of 1: it holds"


def test_the_first_attempt_stays_however_often_the_cell_is_run(context):
    good = solution(context)["09-1"]
    answer(context, "09-1", ...)
    answer(context, "09-1", good | {"test": "more rows"})
    for _ in range(20):
        answer(context, "09-1", good)
    assert topics.first_try(context.evidence, ["09-1"]) == (0, 1)
    assert len(topics.attempts(context.evidence, "09-1")) == evidence.KEPT
    assert "not at the first attempt" in rows(context)["06"].verdict("LINK")
    measured = Record("09-1", "measurement", {"answer": 1, "state": "right"})
    for n in range(20):
        context.evidence.add(dataclasses.replace(measured, value=n))
    kept = [r.value for r in context.evidence.records if r.kind == "measurement"]
    assert kept == list(range(15, 20))


# ---------------------------------------------------------------- predictions, paired


def kept(*records):
    evidence_of = Evidence("04_cos_chain_fusion", "test", seed=1)
    for record in records:
        evidence_of.add(record)
    return {"04": evidence_of}


def prediction(value, device="A", label="x", exercise="04-4", unit="ms"):
    return Record(exercise, "prediction", value, label=label, unit=unit, device={"name": device})


def came(value, device="A", label="x", exercise="04-4", unit="ms", origin="measured"):
    return Record(
        exercise, "outcome", value, label=label, unit=unit, device={"name": device}, origin=origin
    )


def test_a_prediction_meets_the_outcome_of_its_own_machine():
    found = kept(prediction(2.0, "A"), came(1.0, "A"), prediction(9.0, "B"))
    (pair,) = earlier.pairs(found)
    assert (pair.guess, pair.came, pair.device, pair.ratio) == (2.0, 1.0, "A", 2.0)
    assert earlier.pairs(kept(prediction(9.0, "B"), came(1.0, "A"))) == []


def test_what_cannot_be_compared_has_no_ratio():
    found = kept(prediction("memory", label="bucket"), came(1.2, label="bucket"))
    assert [p.ratio for p in earlier.pairs(found)] == [None]
    assert "you said 'memory'" in earlier.predictions_table(found)
    for guess, value in ((1.0, 0.0), (True, 1.0), (1.0, True), ([1], 1.0)):
        assert not [p for p in earlier.pairs(kept(prediction(guess), came(value))) if p.ratio]


def test_the_table_says_where_a_number_comes_from():
    found = kept(prediction(2.0), came(1.0, origin="simulated"))
    assert "off by x2.00   (simulated)" in earlier.predictions_table(found)
    found = kept(prediction(2.0), came(1.0, origin="none"))
    assert earlier.predictions_table(found).endswith("off by x2.00")


# ---------------------------------------------------------------- the learner's verbs


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    for name in ("BRRR_GPU", "BRRR_DEVICE", "NBGRADER_EXECUTION", "COLAB_RELEASE_TAG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BRRR_EVIDENCE_DIR", str(tmp_path))
    monkeypatch.setattr(session, "_current", None)
    lab.setup(STEM, device="cpu")
    yield tmp_path
    if simgpu.active():
        simgpu.active().deactivate()


def test_the_verbs_of_an_untouched_notebook_say_so(at_work, capsys):
    capsys.readouterr()
    lab.first_try("09-1", "right at first")
    lab.topics()
    lab.predictions()
    said = capsys.readouterr().out
    assert "0 of the 0 that you have answered; 11 in all" in said
    assert said.count("not answered yet") == 8
    assert "No earlier prediction is at hand" in said
    assert "No evidence file of 01, 02, 03, 04, 05, 06, 07, 08 lies in this folder" in said


def test_the_count_meets_its_prediction_once_all_are_answered(at_work, capsys):
    lab.predict("09-1", 8, unit="exercises", label="right at first")
    good = solution(session.current().context())
    good["09-8"] = nb09.cases.explain
    for exercise, value in list(good.items())[:-1]:
        lab.check(exercise, value)
    capsys.readouterr()
    lab.first_try("09-1", "right at first")
    said = capsys.readouterr().out
    assert "10 of the 10 that you have answered; 11 in all" in said and "predicted" not in said
    lab.check("09-11", good["09-11"])
    capsys.readouterr()
    lab.first_try("09-1", "right at first")
    said = capsys.readouterr().out
    assert "Right at the first attempt: 11 of 11." in said
    assert "you predicted 8 exercises, it is 11 exercises: off by x1.38" in said
    record = session.current().evidence.latest("09-1", "outcome")
    assert (record.value, record.origin) == (11.0, "none")


def test_a_slip_of_form_is_no_attempt(at_work, capsys):
    good = solution(session.current().context())
    lab.check("09-6", good["09-6"] | {"utilisation": ...})
    lab.check("09-6", good["09-6"] | {"utilisation": "100 %"})
    lab.check("09-6", good["09-6"] | {"memory_ms": "1 ms"})
    lab.check("09-6", None)
    kept = session.current().evidence
    assert topics.first_try(kept, ["09-6"]) == (0, 0)
    assert rows(session.current().context())["02"].verdict("LINK") == "not answered yet"
    for _ in range(10):
        lab.check("09-6", good["09-6"])
    assert topics.first_try(kept, ["09-6"]) == (1, 1)
    assert not rows(session.current().context())["02"].stumbled
    for _ in range(10):
        lab.check("09-6", good["09-6"] | {"utilisation": "100 %"})
    assert kept.latest("09-6", "answer").value["state"] == "not_yet"
    assert rows(session.current().context())["03"].verdict("LINK").startswith("1 of 2")
    lab.check("09-5", good["09-5"] | {"bucket": "memory"})
    assert topics.first_try(kept, ["09-5"]) == (0, 1)


def test_none_right_at_first_stands_beside_the_prediction_too(at_work, capsys):
    lab.predict("09-1", 8, unit="exercises", label="right at first")
    context = session.current().context()
    for exercise in checks.exercises("09"):
        answer(context, exercise, 1, "not_yet")
    capsys.readouterr()
    lab.first_try("09-1", "right at first")
    said = capsys.readouterr().out
    assert "Right at the first attempt: 0 of 11." in said and "You had predicted 8." in said


def test_evidence_without_outcomes_is_not_called_missing():
    found = kept(prediction(2.0)) | {"09": Evidence(STEM, "test", seed=1)}
    assert "no prediction whose outcome is known" in earlier.predictions_table(found)


def test_earlier_predictions_are_drawn_from_the_files_in_the_folder(at_work, capsys, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: figures.append(fig))
    found = kept(prediction(3.0), came(2.0))["04"]
    evidence.write(found, at_work / "04_cos_chain_fusion.evidence.json")
    (at_work / "05_async_timing.evidence.json").write_text("{ half")
    capsys.readouterr()
    lab.predictions()
    said = capsys.readouterr().out
    assert "off by x1.50" in said and "05_async_timing.evidence.json is damaged" in said
    assert "No evidence file of 01, 02, 03, 05, 06, 07, 08 lies" in said
    assert len(figures) == 1 and "04-4 1.5" in plots.alt_text(figures[0])


def test_on_colab_the_links_open_colab(at_work, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(standing, "publish", shown.append)
    lab.check("09-1", solution(session.current().context())["09-1"] | {"test": "more rows"})
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release")
    lab.topics("https://example.org/day1")
    assert 'href="https://example.org/day1/06_batch_size.ipynb"' in shown[-1]["text/html"]
    monkeypatch.delenv("COLAB_RELEASE_TAG")
    lab.topics("https://example.org/day1")
    assert 'href="06_batch_size.ipynb"' in shown[-1]["text/html"]
