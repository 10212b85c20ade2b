"""Residents per mode of an agent: `Policy(resident=modes.AGENT)` (requirements N2-N7)."""

from __future__ import annotations

COMPACTION = "new_context"
"""The context-compaction tool; resident in every mode (N6)."""

AGENT: tuple[str, ...] = ("Read", "Bash", "Edit", "Write", "Glob", "Grep", COMPACTION)
CHAT: tuple[str, ...] = ("Read", "Glob", "Grep", COMPACTION)
PLAN: tuple[str, ...] = ("Read", "Glob", "Grep", "ExitPlanMode", COMPACTION)
GOAL: tuple[str, ...] = ("Read", "Bash", "Edit", "Write", "Glob", "Grep", "UpdateGoal", COMPACTION)
