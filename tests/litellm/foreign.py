"""Two APIs that the emulator does not speak, as far as a session needs: Bedrock Converse and Gemini's generateContent.

Each move of a session is answered in the shape of the API that was asked; what came is kept as with the emulator.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from loadpoint.emulator import Move

Json = dict[str, Any]


def converse(move: Move) -> Json:
    """A move as a reply of Converse."""
    text: list[Json] = [{"text": move.text}] if move.text else []
    calls = [{"toolUse": {"toolUseId": f"tooluse_{call[0]}", "name": call[0], "input": call[1]}} for call in move.calls]
    return {
        "output": {"message": {"role": "assistant", "content": [*text, *calls]}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "metrics": {"latencyMs": 1},
    }


def gemini(move: Move) -> Json:
    """A move as a reply of generateContent."""
    text: list[Json] = [{"text": move.text}] if move.text else []
    calls = [{"functionCall": {"name": call[0], "args": call[1]}} for call in move.calls]
    return {
        "candidates": [{"content": {"role": "model", "parts": [*text, *calls]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-3-pro",
    }


def listed(body: Json) -> list[str]:
    """The names of the tools in a request of either."""
    if "toolConfig" in body:
        return [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"] if "toolSpec" in tool]
    return [each["name"] for tool in body.get("tools", ()) for each in tool.get("function_declarations", ())]


@contextmanager
def playing(*moves: Move) -> Iterator[tuple[str, list[Json]]]:
    """The address of a server that plays the moves, and the bodies that it gets."""
    left, bodies = iter(moves), list[Json]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers.get("content-length") or 0))))
            out = json.dumps((converse if self.path.endswith("/converse") else gemini)(next(left))).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
