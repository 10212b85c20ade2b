"""Local search over tools: exact names first, then weighted BM25 over the words of the definitions."""

from __future__ import annotations

from ._embedding import EmbeddingRanker
from ._index import ToolIndex
from ._match import FusedRanker, Match, Ranker, named_ranker
from ._names import infer_servers

__all__ = ["EmbeddingRanker", "FusedRanker", "Match", "Ranker", "ToolIndex", "infer_servers", "named_ranker"]
