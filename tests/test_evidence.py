"""The evidence file: plain data in, the same data out, and nothing lost on the way."""

import json
import os

import numpy as np
import pytest
import torch

from helpers import evidence as ev


def record(**changes):
    return ev.Record("04-4", "prediction", 1.5, **changes).sealed()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (..., ev.PLACEHOLDER),
        (None, None),
        (True, True),
        (np.bool_(True), True),
        (3, 3),
        (np.int64(3), 3),
        (2.5, 2.5),
        (np.float32(2.5), 2.5),
        (torch.tensor(2.5), 2.5),
        (torch.tensor([1, 2]), [1, 2]),
        (np.array([[1.0], [2.0]]), [[1.0], [2.0]]),
        ((1, "a"), [1, "a"]),
        ({"k": (1, ...)}, {"k": [1, ev.PLACEHOLDER]}),
        ({1: 2}, {"1": 2}),
        (float("nan"), {"float": "nan"}),
        (float("-inf"), {"float": "-inf"}),
        (torch.tensor(float("inf")), {"float": "inf"}),
        (np.str_("a"), "a"),
    ],
)
def test_plain_keeps_values_and_drops_types(value, kept):
    got = ev.plain(value)
    assert got == kept and type(got) is type(kept)
    json.dumps(got, allow_nan=False)


def test_plain_never_keeps_a_live_object():
    class Always(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    assert type(ev.plain(Always(2.0))) is float
    for live in (object(), lambda: 1, ev, torch.nn.Linear(1, 1)):
        with pytest.raises(TypeError, match="is not a number"):
            ev.plain(live)
    endless = []
    endless.append(endless)

    class Sly:
        def tolist(self):
            raise RuntimeError("no")

        size = 1

    for large, words in [
        (torch.zeros(100, 100), "too large"),
        ([[0] * 100] * 100, "too large"),
        ("x" * 10**6, "too large"),
        (endless, "without end"),
        (torch.zeros(3, device="meta"), "cannot be read"),
        (Sly(), "cannot be read"),
    ]:
        with pytest.raises(TypeError, match=words):
            ev.plain(large)
    assert ev.plain(10**5000) == {"float": "inf"}


def test_a_cell_run_a_hundred_times_stays_small():
    kept = ev.fresh("04_x", "0.1")
    kept.add(ev.Record("04-4", "prediction", 1))
    for value in range(100):
        kept.add(ev.Record("04-4", "answer", value))
    values = [r.value for r in kept.records]
    assert values == [1, *range(100 - ev.KEPT, 100)]


def test_changed_records_are_taken_out():
    kept = ev.fresh("04_x", "0.1")
    for value in (1.0, 2.0):
        kept.add(ev.Record("04-4", "prediction", value))
    kept.records[0] = ev.Record.from_dict(kept.records[0].to_dict() | {"value": 9.0})
    assert [r.value for r in kept.changed()] == [9.0]
    assert [r.value for r in kept.records] == [2.0]


def test_unplain_gives_floats_back():
    value = ev.unplain(json.loads(json.dumps(ev.plain({"a": [float("inf"), 1]}))))
    assert value == {"a": [float("inf"), 1]}


def test_the_checksum_notices_accidents():
    sealed = record()
    assert sealed.intact and sealed.time
    data = sealed.to_dict() | {"value": 1.6}
    assert not ev.Record.from_dict(data).intact


def test_a_file_survives_the_round_trip(tmp_path):
    kept = ev.fresh("04_x", "0.1")
    kept.add(record())
    ev.write(kept, tmp_path / "04_x.evidence.json")
    again = ev.read(tmp_path / "04_x.evidence.json")
    assert again == kept
    assert [p.name for p in tmp_path.iterdir()] == ["04_x.evidence.json"]


def test_bad_files_get_one_sentence(tmp_path):
    path = tmp_path / "04_x.evidence.json"
    with pytest.raises(ev.EvidenceError, match="cannot be read"):
        ev.read(path)
    for text, words in [
        ("{", "damaged at line 1"),
        ("[]", "not an evidence file"),
        ('{"schema": 1, "notebook": "x", "seed": "a", "records": []}', "needs a notebook"),
        ('{"schema": 1, "notebook": "x", "seed": 1, "records": [{}]}', "wrong fields"),
        ("[" * 100_000, "damaged"),
        ('{"schema": 1, "seed": NaN}', "damaged"),
        ('{"schema": 1, "seed": ' + "9" * 6000 + "}", "damaged"),
        ("\udce9".encode("latin-1", "surrogateescape"), "cannot be read"),
    ]:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ev.EvidenceError, match=words) as told:
            ev.read(path)
        assert "\n" not in str(told.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_gets_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ev.EvidenceError, match="cannot be written"):
        ev.write(ev.fresh("04_x", "0.1"), tmp_path / "x.json")


def test_a_missing_folder_gets_one_sentence(tmp_path):
    with pytest.raises(ev.EvidenceError, match="cannot be written"):
        ev.write(ev.fresh("04_x", "0.1"), tmp_path / "gone" / "x.json")


def output(**data):
    return {"output_type": "display_data", "data": data, "metadata": {}}


def notebook(*outputs):
    return {"cells": [{"cell_type": "code", "source": "", "outputs": list(outputs)}]}


def test_a_byte_order_mark_is_no_damage(tmp_path):
    kept = ev.fresh("04_x", "0.1")
    ev.write(kept, tmp_path / "x.json")
    data = (tmp_path / "x.json").read_bytes()
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf" + data)
    assert ev.read(tmp_path / "x.json") == kept


def test_a_record_of_odd_shape_is_named():
    good = record().to_dict()
    for change in ({"device": {"name": 5}}, {"device": []}, {"kind": "guess"}, {"label": 1}):
        with pytest.raises(ev.EvidenceError):
            ev.Record.from_dict(good | change)
    forged = record().to_dict() | {"value": 2}
    assert ev.from_notebook(notebook(output(**{ev.MIME: forged}))) == []


def test_records_are_lifted_from_either_form_once():
    first, second, third = (record(label=name) for name in "abc")
    nb = notebook(
        output(**{ev.MIME: first.to_dict(), "text/plain": f"said\n{ev.line(first)}"}),
        output(**{"text/plain": [f"said\n{ev.line(second)}"]}),
        output(**{ev.MIME: json.dumps(third.to_dict())}),
        {"output_type": "stream", "text": "BRRR-EVIDENCE {broken}\n"},
        output(**{ev.MIME: {"exercise": "04-4"}}),
    )
    assert ev.from_notebook(nb) == [first, second, third]
    assert ev.from_notebook({"cells": [{"cell_type": "markdown"}]}) == []


def test_latest_and_drop():
    kept = ev.fresh("04_x", "0.1")
    for value in (1, 2):
        kept.add(ev.Record("04-4", "prediction", value))
    kept.add(ev.Record("04-5", "prediction", 3))
    assert kept.latest("04-4", "prediction").value == 2
    assert kept.latest("04-4", "answer") is None
    assert kept.drop("04-4") == 2
    assert [r.value for r in kept.records] == [3]
