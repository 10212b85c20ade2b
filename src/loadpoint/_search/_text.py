"""Text to index terms: words split at case, separators and digits, diacritics folded, CJK cut into bigrams, stemmed.

The same function serves index and query, so whatever is displayed to a model can be searched by it.
"""

from __future__ import annotations

import re
import unicodedata

_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Blocks with combining marks, which are no word characters to `re` but stand inside words."""

_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SHORTS = re.compile(r"(?<=[A-Z]{2})s(?![a-z])")
"""The plural of an abbreviation: `URLs`, `listPRs`. It is no camel case."""

_NO_SPACES = re.compile(
    # Scripts without spaces between words (Thai, Lao, Khmer, Burmese, kana, Han), or with glued particles (Hangul).
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
MEMO_LIMIT = 200_000
"""Distinct raw words that one `Terms` remembers; beyond it, words are analysed anew each time."""

LONGEST_WORD, LONGEST_RUN = 64, 400
"""Characters of one word that are looked at: a longer one is no word. Scripts without spaces have longer runs."""


def words(text: str) -> list[str]:
    """The raw words of `text`, case kept, in order: maximal runs of letters, digits and marks."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


_PLAIN = re.compile("[\x00-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb-\xbf\u2010-\u2027\u2190-\u23ff\u2500-\u27bf]*")
"""ASCII and the punctuation, arrows and symbols of English prose: nothing to level."""

_MAYBE_MARK = re.compile("[\u0300-\u1fff\u20d0-\u20ff\u3099\u309a\ua600-\uabff\ufe00-\ufe2f]")


def _unmarked(text: str) -> str:
    if text.isascii() or _PLAIN.fullmatch(text):
        return text
    apart = _MAYBE_MARK.sub(_without_mark, unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", apart)


def _without_mark(found: re.Match[str]) -> str:
    char = found.group()
    return "" if unicodedata.category(char)[0] == "M" else char


def fold(text: str) -> str:
    """`text` in lower case without diacritics, full-width forms levelled; Hangul syllables stay whole."""
    return _unmarked(text).casefold()


def level(name: str) -> str:
    """`name` folded, with every separator taken out: equal for `Create-Issue`, `create_issue` and `createIssue`."""
    return "".join(_PIECE.findall(fold(name)))


def stem(word: str) -> str:
    """A short form that singular and plural, `create`, `creating`, `created` and `creation` share. ASCII words only."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and any(vowel in root for vowel in "aeiouy"):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    if len(word) > 7 and word.endswith(("tion", "sion")):
        word = word[:-3]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_NO_PLURALS = frozenset("news https series alias canvas atlas always kubernetes analytics perhaps across".split())


def _singular(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def terms(word: str) -> tuple[str, ...]:
    """The index terms of one raw word: its parts, and the whole where it has several. No duplicates, order kept."""
    if word.isascii() and word.isalpha() and (word.islower() or word.isupper() or word.istitle()):
        return (stem(word[:LONGEST_WORD].lower()),)
    word = _SHORTS.sub("", word)
    found: list[str] = []
    parts: list[str] = []
    for run in _runs(_unmarked(word[: LONGEST_WORD if word.isascii() else LONGEST_RUN])):
        if _NO_SPACES.fullmatch(run):
            found.extend(_bigrams(run))
        else:
            parts.extend(part.casefold() for part in _CAMEL.split(run))
    whole = "".join(parts) if len(parts) > 1 else ""
    if 0 < len(whole) <= 3:
        return (*found, whole)  # "s3", "k8s", "v2": the letters and digits alone mean nothing
    found.extend(stem(part) for part in parts if len(part) > 1 or not part.isdigit())
    if whole:
        found.append(whole)
    return tuple(dict.fromkeys(found))


def _runs(word: str) -> list[str]:
    """Runs of one kind in a raw word: letters, digits, or characters of a script without spaces; case kept."""
    runs: list[str] = []
    for piece in _PIECE.findall(word):
        position = 0
        for match in _NO_SPACES.finditer(piece) if not piece.isascii() else ():
            if match.start() > position:
                runs.append(piece[position : match.start()])
            runs.append(match.group())
            position = match.end()
        if position < len(piece):
            runs.append(piece[position:])
    return runs


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) < 2 else [run[at : at + 2] for at in range(len(run) - 1)]


class Terms(dict[str, tuple[str, ...]]):
    """A memo of `terms`: texts repeat their words, so an index analyses each distinct raw word once."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        found = terms(word)
        if len(self) < MEMO_LIMIT:
            self[word] = found
        return found
