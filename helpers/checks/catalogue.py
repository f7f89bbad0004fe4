"""The catalogue: every sentence that a check says, by key, in one file per language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGE = "en"


@cache
def _entries(language: str) -> dict[str, Any]:
    folder = files("helpers.checks").joinpath("messages", language)
    flat: dict[str, Any] = {}
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.endswith(".toml"):
            _flatten(tomllib.loads(path.read_text("utf-8")), "", flat)
    return flat


def _flatten(node: dict[str, Any], prefix: str, into: dict[str, Any]) -> None:
    for key, value in node.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", into)
        else:
            into[prefix + key] = value


def has_text(key: str) -> bool:
    return key in _entries(LANGUAGE)


def text(key: str, **values: Any) -> str:
    """The sentence for `key`, its `{placeholders}` filled. KeyError if the catalogue lacks it."""
    entry = _entries(LANGUAGE).get(key)
    if not isinstance(entry, str):
        raise KeyError(f"the catalogue ({LANGUAGE}) has no sentence {key!r}")
    return entry.format(**values) if values else entry


def texts(key: str) -> list[str]:
    """The list of sentences for `key`, for example the steps of a hint."""
    entry = _entries(LANGUAGE).get(key)
    if not isinstance(entry, list):
        raise KeyError(f"the catalogue ({LANGUAGE}) has no list {key!r}")
    return list(entry)
