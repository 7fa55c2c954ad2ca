"""The word-level form of workbench texts: `split` into pieces, `join` back.

A quoted name is one piece, quotes included, so that copying a name from a request into a call copies one piece. A call
`pay(person='anna', amount=40)` is six pieces: ``pay(`` ``person=`` ``'anna'`` ``amount=`` ``40`` ``)``. For calls in
canonical form, requests, results and announcements, `join(split(text)) == text`; `join` is total, so any pieces a model
samples become some text, which the call parser then judges.
"""

import re
from collections.abc import Iterable, Sequence

_PIECE = re.compile(r"[A-Za-z_]\w*[(=]|'[^'\s]*'|\d+|[A-Za-z_]\w*|[^\s,]")


def split(text: str) -> list[str]:
    """The pieces of a text; white space only separates."""
    return _PIECE.findall(text)


def join(pieces: Iterable[str]) -> str:
    """The text of pieces: the inverse of `split` on the language's own texts."""
    text = ""
    last = ""
    for piece in pieces:
        text += _gap(last, piece) + piece
        last = piece
    return text


def calls_of(pieces: Sequence[str]) -> tuple[str, ...]:
    """An assistant message's calls: each ends at its ``)``; pieces after the last one are a call of their own, which
    the parser will refuse."""
    calls: list[str] = []
    current: list[str] = []
    for piece in pieces:
        current.append(piece)
        if piece == ")":
            calls.append(join(current))
            current = []
    return (*calls, join(current)) if current else tuple(calls)


def _gap(last: str, piece: str) -> str:
    if not last or last.endswith(("(", "=")) or piece == ")":
        return ""
    return ", " if piece.endswith("=") else " "
