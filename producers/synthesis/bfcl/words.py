"""The words of BFCL variants (words.toml): names, short texts, and how parameters are spoken of."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from producers.environments.jsonlines import Record
from producers.environments.tables import load


class Phrase(NamedTuple):
    """How a parameter is spoken of."""

    literal: str = "'{}'"
    """its value"""
    back: str = "that"
    """a value that is known by now"""
    vague: str = ""
    """the value left open"""
    supply: str = ""
    """the sentence that names the value afterwards"""


class _Words(Record):
    lists: Mapping[str, tuple[str, ...]]
    sentences: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]
    phrases: Mapping[str, Phrase]


_WORDS = load(Path(__file__).with_name("words.toml"), _Words)
LISTS, SENTENCES, KINDS, PHRASES = _WORDS.lists, _WORDS.sentences, _WORDS.kinds, _WORDS.phrases
PLAIN = Phrase()
