"""The pages that notebooks link to: filled, generated, and no link of theirs leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from staff import build, lint, pages
from staff.course import CourseError, load
from tests import tiny_course

ROOT = Path(__file__).parent.parent
TERMS = [
    "FLOP",
    "FLOP/s",
    "HBM",
    "bandwidth",
    "SRAM",
    "PCIe",
    "SM",
    "tensor core",
    "matmul",
    "pointwise",
    "kernel",
    "kernel launch",
    "fusion",
    "torch.compile",
    "CUDA graph",
    "overhead",
    "asynchronous execution",
    "arithmetic intensity",
    "ridge point",
    "compute-bound",
    "memory-bound",
    "overhead-bound",
    "KV cache",
    "prefill",
    "decode",
    "latency",
    "throughput",
    "roofline",
    "register",
    "L2",
    "MFU",
    "MBU",
    "quantisation",
    "warm-up",
]


def course(tmp_path: Path, page: str, prose: str = ""):
    source = tiny_course.SETUP + tiny_course.exercise("04-1")
    source += f"\n# %% [markdown]\n# {prose}\n" if prose else ""
    made = tiny_course.write(tmp_path, {"04_tiny": source})
    (tmp_path / "docs" / "src").mkdir(parents=True)
    (tmp_path / "docs" / "src" / "glossary.md").write_text(page, "utf-8")
    return made


def messages(made) -> list[str]:
    build.build(made)
    return [f.message for f in lint.lint(made)]


def test_every_term_of_the_course_has_one_line_in_the_glossary() -> None:
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
        if line.startswith("| <a id=")
    ]
    named = [part for row in rows for part in row[1].split("**")[1].split(", ")]
    assert sorted(named) == sorted(TERMS)
    assert all(len(row[2].strip()) > 20 and row[3].strip() in CHAPTERS for row in rows)


CHAPTERS = {f"0{n}" for n in range(1, 10)}


def test_a_page_is_filled_and_says_where_to_edit_it(tmp_path: Path) -> None:
    made = course(tmp_path, "A T4 moves {{fact:device.t4.bandwidth}}.\n")
    build.build(made)
    text = (tmp_path / "docs" / "glossary.md").read_text("utf-8")
    assert text.startswith("<!-- Generated") and "docs/src/glossary.md" in text
    assert "A T4 moves 320 GB/s." in text
    (tmp_path / "docs" / "glossary.md").write_text("changed", "utf-8")
    assert any("docs/glossary.md" in found for found in build.check(made))


def test_an_unknown_placeholder_names_page_and_name(tmp_path: Path) -> None:
    made = course(tmp_path, "{{fact:device.t5.bandwidth}} and {{course:nonsense}}")
    with pytest.raises(CourseError, match=r"docs/src/glossary\.md.*t5[\s\S]*nonsense"):
        build.build(made)


def test_a_bare_number_on_a_page_is_found(tmp_path: Path) -> None:
    assert any("320 GB/s" in m for m in messages(course(tmp_path, "It moves 320 GB/s.")))


@pytest.mark.parametrize(
    ("page", "prose", "wrong"),
    [
        ("[x](nowhere.md)", "", "'nowhere.md' leads nowhere"),
        ("[x](#kernel)", "", "'#kernel' leads nowhere"),
        ("[x](../../elsewhere.md)", "", "leads nowhere"),
        ("a page", "[k]({{course:docs}}/glossary.md#kernel)", "no such page or anchor"),
        ("a page", "[k]({{course:docs}}/glossery.md)", "no such page or anchor"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, page, prose, wrong) -> None:
    assert any(wrong in m for m in messages(course(tmp_path, page, prose)))


def test_links_that_lead_somewhere_pass(tmp_path: Path) -> None:
    page = '<a id="kernel"></a> [x](#kernel) [y](glossary.md#kernel) [z](../course.toml)'
    found = messages(course(tmp_path, page, "[k]({{course:docs}}/glossary.md#kernel)"))
    assert not [m for m in found if "leads nowhere" in m]


def test_the_pages_name_every_notebook() -> None:
    made = load(ROOT)
    text = "".join(pages.made(made).values())
    for notebook in made.notebooks:
        assert notebook.stem in text or notebook.number in text
