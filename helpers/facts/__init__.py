"""The sourced numbers of the course: each value with unit, source and date.

The data are the TOML files beside this module. A fact is an inline table with the keys
``value``, ``unit``, ``source`` (an id of ``sources.toml``), ``date`` (the day the source was
published or read) and, where needed, ``note``. Its path is the file's kind and the table's
keys joined by dots: ``device.t4.bandwidth``. Tables may also carry the plain text ``name``.
"""

from __future__ import annotations

import datetime
import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from helpers.facts.units import UNITS, format_value

__all__ = ["UNITS", "Fact", "FactError", "fact", "facts", "label", "problems", "show", "sources"]

Value = float | int | str | bool | list

KINDS: Mapping[str, str] = {
    "architectures": "architecture",
    "devices": "device",
    "host": "host",
    "instructions": "instruction",
    "models": "model",
    "prices": "price",
    "results": "result",
}
"""File name (without ``.toml``) -> first word of a path."""

PRICE_LIFE = datetime.timedelta(days=365)
"""A price older than this says so."""

_KEYS = {"value", "unit", "source", "date"}


class FactError(KeyError):
    """No such fact, or a fact that lacks its unit, source or date."""

    def __str__(self) -> str:  # KeyError would show the sentence in quotes
        return str(self.args[0])


@dataclass(frozen=True)
class Fact:
    """One sourced value. ``value`` is in ``unit`` (seconds, bytes, FLOP/s: never prefixed)."""

    path: str
    value: Value
    unit: str
    source: str
    """Title of the source."""
    url: str
    """Address of the source; empty where none is known."""
    date: datetime.date
    """The day the source was published or read."""
    note: str = ""

    def stale(self, today: datetime.date | None = None) -> bool:
        """True for a price older than 365 days; every other fact does not age."""
        return self.unit == "USD/h" and (today or datetime.date.today()) - self.date > PRICE_LIFE


def fact(path: str) -> Fact:
    """Return the fact at ``path``; FactError names the nearest paths when there is none."""
    try:
        return _load()[0][path]
    except KeyError:
        pass
    below = sorted(known for known in _load()[0] if known.startswith(f"{path}."))
    near = below[:4] or difflib.get_close_matches(path, _load()[0], n=4, cutoff=0.6)
    hint = f" Did you mean {', '.join(near)}?" if near else " helpers.facts.facts() lists them all."
    raise FactError(f"There is no fact {path!r}.{hint}")


def facts() -> dict[str, Fact]:
    """Return every fact by its path, in file order."""
    return dict(_load()[0])


def label(path: str) -> str:
    """Return the plain ``name`` of a table: ``label("price.lambda")`` is the seller's name."""
    try:
        return _load()[1][path]
    except KeyError:
        raise FactError(f"The facts have no table named {path!r} with a name.") from None


def sources() -> dict[str, dict[str, str]]:
    """Return the registry of sources: id -> title, url and, where needed, note."""
    return {key: dict(entry) for key, entry in _read("sources").items()}


def show(path: str, spec: str | None = None, *, today: datetime.date | None = None) -> str:
    """Return a fact as text for people: ``"2,039 GB/s"``.

    ``spec`` picks the unit shown (``"MB"``, ``"ms"``, ``"TB/s"``); without it the usual one is
    taken. A price always carries its seller and date, and says so when it is over a year old.
    """
    found = fact(path)
    text = format_value(found.value, found.unit, spec, where=path)
    if found.unit == "USD/h":
        old = ", more than a year old" if found.stale(today) else ""
        text += f" ({label('.'.join(path.split('.')[:2]))}, {found.date.isoformat()}{old})"
    return text


def problems(today: datetime.date) -> list[str]:
    """Return one sentence for each dated fact that lies after ``today``; empty when all is well.

    Kept apart from loading so that a learner's wrong clock cannot stop the course.
    """
    return [
        f"{found.path}: the date {found.date.isoformat()} lies in the future."
        for found in _load()[0].values()
        if found.date > today
    ]


def parse(
    kind: str, tables: Mapping, registry: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Fact], dict[str, str]]:
    """Return (facts by path, names by path) of one file's tables; FactError on any gap."""
    found: dict[str, Fact] = {}
    names: dict[str, str] = {}
    for path, entry in _walk(kind, tables):
        if isinstance(entry, str):
            names[path] = entry
        else:
            found[path] = _fact(path, entry, registry)
    return found, names


def _walk(path: str, table: Mapping) -> Iterator[tuple[str, Mapping | str]]:
    for key, entry in table.items():
        if key == "name" and isinstance(entry, str):
            yield path, entry
        elif not isinstance(entry, dict):
            raise FactError(f"{path}.{key} is a bare value: give it value, unit, source and date.")
        elif "value" in entry:
            yield f"{path}.{key}", entry
        else:
            yield from _walk(f"{path}.{key}", entry)


def _fact(path: str, entry: Mapping, registry: Mapping[str, Mapping[str, str]]) -> Fact:
    missing = sorted(_KEYS - entry.keys())
    extra = sorted(entry.keys() - _KEYS - {"note"})
    if missing or extra:
        gap = f"lacks {', '.join(missing)}" if missing else f"has unknown {', '.join(extra)}"
        raise FactError(f"{path} {gap}: a fact has value, unit, source, date and perhaps a note.")
    if entry["unit"] not in UNITS:
        raise FactError(f"{path} has the unknown unit {entry['unit']!r}; known: {', '.join(UNITS)}")
    if entry["source"] not in registry:
        raise FactError(f"{path} names the source {entry['source']!r}, not in sources.toml.")
    try:
        date = datetime.date.fromisoformat(entry["date"])
    except (TypeError, ValueError):
        raise FactError(f"{path} has the date {entry['date']!r}: write it as 2026-11-29.") from None
    source = registry[entry["source"]]
    return Fact(
        path=path,
        value=entry["value"],
        unit=entry["unit"],
        source=source["title"],
        url=source["url"],
        date=date,
        note=entry.get("note", ""),
    )


def _read(stem: str) -> dict:
    text = resources.files(__package__).joinpath(f"{stem}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def _load() -> tuple[dict[str, Fact], dict[str, str]]:
    registry = _read("sources")
    found: dict[str, Fact] = {}
    names: dict[str, str] = {}
    for stem, kind in KINDS.items():
        more, labels = parse(kind, _read(stem), registry)
        found |= more
        names |= labels
    return found, names
