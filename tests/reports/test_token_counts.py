"""Field reports about counting tokens: nobody is asked, and tools count in every shape of them."""

from __future__ import annotations

import pytest
from tests.core.conversation import CHAT, MESSAGES, RESPONSES, Form

from loadpoint.emulator import Move


@pytest.mark.report("BR-211")
def test_tools_count_in_every_wire_shape_without_the_provider():
    counted: dict[str, int] = {}
    for dialect in (CHAT, MESSAGES, RESPONSES):
        for strategy in ("resend", "frozen"):
            talk = Form(dialect, strategy, stream=False).talk()
            talk.user("hi")
            talk.send(Move(text="hello"))
            tokens = talk.report.tokens
            assert tokens.eager > 60 * 40, "sixty tools of some sixty tokens each"
            assert 0 < tokens.sent < tokens.eager
            counted[f"{dialect} {strategy}"] = tokens.eager
    assert max(counted.values()) < 1.25 * min(counted.values())
