"""How schemas reach the model: one file per strategy; `choose` says which one a conversation takes, and why."""

from .choose import Choice, choose, threshold

__all__ = ["Choice", "choose", "threshold"]
