"""Makes `src/loadpoint/_search/data/related.gz` again: the recipe, not a part of the library.

    python benchmarks/related_words.py --words WORDS --glosses DICT --model MODEL.onnx --tokenizer TOKENIZER.json OUT

`WORDS` is a text file of English words in order of frequency (the list of GloVe 6B), `DICT` the folder with WordNet's
`data.*` files, the model all-MiniLM-L6-v2 as ONNX. Needs numpy, scipy, onnxruntime and tokenizers. Another build of
these gives slightly other vectors: the shipped file is what counts.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadpoint._search._text import stem, terms, words
from loadpoint._search._words import STOP_WORDS

SHORT = frozenset("db pr id ip ui os ai pc tv uk us eu".split())
FORMS, STEMS, WIDE, DIMENSIONS = 60_000, 24_000, 15_000, 64
SURE, MOST, PAIRS = 14, 32, 332_000
"""Pairs that every word may have, that one may have at most, and in all."""

_EXAMPLES = re.compile(r';\s*"')
FLOOR, ZERO, PRIOR, TEXTS = 0.28, 0.25, 0.45, 150_000


def encoder(model: Path, tokenizer: Path) -> Any:
    """A function from texts to normalised mean-pooled vectors."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    tokens = Tokenizer.from_file(str(tokenizer))
    tokens.no_truncation()
    tokens.no_padding()
    session = onnxruntime.InferenceSession(str(model))

    def encode(texts: Sequence[str], longest: int = 48) -> Any:
        out: list[Any] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), 128):
            batch = order[start : start + 128]
            ids = [tokens.encode(texts[at]).ids[:longest] for at in batch]
            shape = (len(batch), max(map(len, ids)))
            given, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            for row, one in enumerate(ids):
                given[row, : len(one)], mask[row, : len(one)] = one, 1
            feed = {"input_ids": given, "attention_mask": mask, "token_type_ids": np.zeros_like(given)}
            hidden = session.run(None, feed)[0]
            pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            for row, at in enumerate(batch):
                out[at] = pooled[row] / np.linalg.norm(pooled[row])
        return np.array(out, np.float32)

    return encode


def glosses(folder: Path) -> list[str]:
    """WordNet's glosses behind their words, its examples, and its groups of words, shuffled."""
    texts: list[str] = []
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{kind}").read_text("latin1").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split("|", 1)
            parts = head.split()
            lemmas = [parts[4 + 2 * at].split("(")[0].replace("_", " ") for at in range(int(parts[3], 16))]
            meaning = _EXAMPLES.split(gloss.strip())[0].strip()
            texts.append(f"{', '.join(lemmas[:4])}: {meaning}")
            texts += re.findall(r'"([^"]+)"', gloss)[:2]
            if len(lemmas) > 1:
                texts.append(" ".join(lemmas[:6]))
    random.Random(1).shuffle(texts)
    return texts[:TEXTS]


def fitted(prior: Any, known: dict[str, int], texts: Sequence[str], targets: Any) -> Any:
    """Vectors of stems whose sums, divided by the root of their number, come near `targets`: ridge towards `prior`."""
    import numpy as np
    from scipy import sparse

    rows: list[int] = []
    columns: list[int] = []
    for at, text in enumerate(texts):
        held = {known[t] for w in words(text) if w.lower() not in STOP_WORDS for t in terms(w) if t in known}
        rows += [at] * len(held)
        columns += sorted(held)
    matrix = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(texts), len(known)))
    counts = np.maximum(np.asarray(matrix.sum(1)).ravel(), 1)
    matrix = sparse.diags(1 / np.sqrt(counts)) @ matrix
    rest = matrix.T @ (targets - targets.mean(0) - matrix @ prior)
    found = np.zeros_like(prior)
    step, left = rest.copy(), (rest * rest).sum(0)
    for _ in range(25):  # conjugate gradients, all columns at once
        image = matrix.T @ (matrix @ step) + 3.0 * step
        length = left / ((step * image).sum(0) + 1e-12)
        found += length * step
        rest -= length * image
        now = (rest * rest).sum(0)
        step = rest + (now / (left + 1e-12)) * step
        left = now
    return prior + found


def pairs(vectors: Any) -> list[list[tuple[int, int]]]:
    """Per word the places of its nearest words with their nearness in sixteenths."""
    import numpy as np

    unit = vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)
    nearest: list[list[tuple[float, int, int]]] = []
    for at in range(WIDE):
        close = unit @ unit[at]
        close[at] = -1
        best = np.argsort(-close)[:48]
        nearest.append(
            [(float(close[o]), rank, int(o)) for rank, o in enumerate(best) if o < WIDE and close[o] > FLOOR]
        )
    ranked = [[(close, rank, o) for rank, (close, _, o) in enumerate(held[:MOST])] for held in nearest]
    sure = sum(min(len(held), SURE) for held in ranked)
    further = sorted((close for held in ranked for close, rank, _ in held if rank >= SURE), reverse=True)
    cut = further[min(PAIRS - sure, len(further)) - 1]
    return [
        [(o, max(1, min(15, round((c - ZERO) / (1 - ZERO) * 16)))) for c, rank, o in held if rank < SURE or c >= cut]
        for held in ranked
    ]


def written(
    stems: Sequence[str], ranks: Sequence[int], held: Sequence[Sequence[tuple[int, int]]], numbers: Any
) -> bytes:
    """The file's content, as `data/README.md` describes it."""
    import numpy as np

    first = np.cumsum([0, *map(len, held)])
    near = [other for one in held for other, _ in one]
    share = [nearness for one in held for _, nearness in one]
    if len(share) % 2:
        near.append(0)
        share.append(0)
    text = " ".join(stems).encode()
    scale = 127 / np.quantile(np.abs(numbers), 0.9999)
    lanes = np.clip(np.round(numbers * scale), -127, 127).astype(int) + 128
    return b"".join(
        (
            f"loadpoint related words 1\n{len(stems)} {len(near)} {len(text)}\n".encode(),
            text,
            np.array([min(rank // 4, 65_535) for rank in ranks], "<u2").tobytes(),
            np.array(first, "<u4").tobytes(),
            np.array(near, "<u2").tobytes(),
            bytes(share[at] | share[at + 1] << 4 for at in range(0, len(share), 2)),
            lanes.astype(np.uint8).tobytes(),
        )
    )


def main() -> None:
    """Write the table."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("words", "glosses", "model", "tokenizer"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    listed = list(enumerate(options.words.read_text("utf-8").split("\n")))[:150_000]
    listed = [(rank, w) for rank, w in listed if w.isascii() and w.isalpha() and 2 <= len(w) <= 20][:FORMS]
    encode = encoder(options.model, options.tokenizer)
    single = encode([word for _, word in listed])
    single -= single.mean(0)
    single /= np.linalg.norm(single, axis=1, keepdims=True)
    forms: dict[str, list[int]] = {}
    for at, (_, word) in enumerate(listed):
        if len(word) > 2 or word in SHORT:
            forms.setdefault(stem(word), []).append(at)
    stems = list(forms)[:STEMS]
    own = np.array([single[forms[one][:4]].sum(0) for one in stems])
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    texts = glosses(options.glosses)
    learnt = fitted(PRIOR * own, {one: at for at, one in enumerate(stems)}, texts, encode(texts))
    centred = own - own.mean(0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    held = pairs(centred + learnt / (np.linalg.norm(learnt, axis=1, keepdims=True) + 1e-9))
    _, _, directions = np.linalg.svd(learnt, full_matrices=False)
    numbers = (learnt @ directions[:DIMENSIONS].T)[:WIDE]
    ranks = [listed[forms[one][0]][0] for one in stems[:WIDE]]
    options.out.write_bytes(gzip.compress(written(stems[:WIDE], ranks, held, numbers), 9, mtime=0))


if __name__ == "__main__":
    main()
