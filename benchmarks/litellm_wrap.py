"""What wrapping litellm adds to litellm's own import: the adapter's modules and the first `wrap`.

    python benchmarks/litellm_wrap.py [--repeat 5]

The core is imported first: it is the same for every adapter. Each figure is the best of fresh processes, which find
compiled files, as installed ones are (the first of them makes those). Budget: 5 ms. Exits 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

BUDGET_MS = 5.0
PROGRAM = """
import json, os, time
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
before = time.perf_counter()
import litellm
own = time.perf_counter() - before
import loadpoint, loadpoint._adapter, loadpoint._session
from loadpoint_adapters._dialects import anthropic_messages, openai_chat, openai_responses
loadpoint._adapter._entry_points()
before = time.perf_counter()
loadpoint.wrap(litellm)
print(json.dumps([own * 1000, (time.perf_counter() - before) * 1000]))
"""


def main() -> int:
    """Print the figures; 1 if the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    runs = []
    with tempfile.TemporaryDirectory() as compiled:
        settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        for _ in range(parser.parse_args().repeat + 1):
            run = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", PROGRAM],
                capture_output=True,
                text=True,
                check=True,
                env=settings,
            )
            runs.append(json.loads(run.stdout))
    own, added = (min(each) for each in zip(*runs, strict=True))
    print(f"import litellm {own:,.0f} ms; wrapping it adds {added:.1f} ms (budget {BUDGET_MS:g} ms)")
    return int(added > BUDGET_MS)


if __name__ == "__main__":
    sys.exit(main())
