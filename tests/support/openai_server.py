"""A server on loopback that speaks OpenAI's chat completions, and misbehaves as servers do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How the server misbehaves for one request.

    Args:
        status: Of an error.
        message: Of the error.
        headers: Of the error, such as ``Retry-After``.
        waits: Seconds before it answers.
        cut: How many characters of the answer come, with ``finish_reason`` "length"; None for all.
        says: What comes in place of the answer.
    """

    status: int = 200
    message: str = "the server is at fault"
    headers: dict[str, str] = field(default_factory=dict)
    waits: float = 0.0
    cut: int | None = None
    says: str | None = None


class OpenAiServer:
    """The server.

    Args:
        answer: From the messages of a request to what the model says, as a value of JSON or a text.
        faults: For the first requests, in order; None for a request that is answered.
        structured: Whether it takes ``response_format`` and ``tools``; else it refuses them.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[dict[str, Any]]], Any],
        faults: Sequence[Fault | None] = (),
        *,
        structured: bool = True,
    ) -> None:
        self.answer, self.faults = answer, list(faults)
        self.structured = structured
        self.requests: list[dict[str, Any]] = []
        self.prompt_tokens = self.output_tokens = 0
        self._lock = threading.Lock()

    def reply(self, request: dict[str, Any]) -> tuple[Fault, dict[str, Any], dict[str, int]]:
        """The fault, the message and the usage for a request."""
        with self._lock:
            self.requests.append(request)
            fault = (self.faults.pop(0) if self.faults else None) or Fault()
        if fault.status != 200:
            return fault, {}, {}
        if not self.structured and ("tools" in request or "response_format" in request):
            return Fault(status=400, message="this model does not support tools"), {}, {}
        said = fault.says if fault.says is not None else self.answer(request["messages"])
        text = said if isinstance(said, str) else json.dumps(said)
        text = text[: fault.cut]
        usage = {
            "prompt_tokens": sum(len(str(one["content"]).split()) for one in request["messages"]),
            "completion_tokens": len(text.split()),
        }
        usage["total_tokens"] = sum(usage.values())
        with self._lock:
            self.prompt_tokens += usage["prompt_tokens"]
            self.output_tokens += usage["completion_tokens"]
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if request.get("tools") and fault.says is None:
            name = request["tools"][0]["function"]["name"]
            call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": text}}
            message |= {"content": None, "tool_calls": [call]}
        return fault, message, usage


def _make_handler(server: OpenAiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fault, message, usage = server.reply(request)
            time.sleep(fault.waits)
            if fault.status != 200:
                error = {"message": fault.message, "type": "error", "code": None, "param": None}
                self._send(fault.status, json.dumps({"error": error}).encode(), fault.headers)
                return
            reason = (
                "length" if fault.cut is not None else "tool_calls" if "tool_calls" in message else "stop"
            )
            common = {"id": "c-1", "created": 0, "model": request["model"]}
            if request.get("stream"):
                body = b"".join(_stream(common, message, reason, usage))
                self._send(200, body, {"Content-Type": "text/event-stream"})
                return
            choice = {"index": 0, "message": message, "finish_reason": reason}
            value = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send(200, json.dumps(value).encode(), {})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            try:
                self.send_response(status)
                for name, value in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the client did not wait
                pass

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _stream(
    common: dict[str, Any], message: dict[str, Any], reason: str, usage: dict[str, int]
) -> Iterator[bytes]:
    """A reply in the events of a stream: pieces of eight characters."""

    def event(delta: dict[str, Any], **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": more.pop("finish_reason", None)}
        value = {**common, "object": "chat.completion.chunk", "choices": [choice], **more}
        return f"data: {json.dumps(value)}\n\n".encode()

    text = message["content"] or ""
    yield event({"role": "assistant", "content": ""})
    for at in range(0, len(text), 8):
        yield event({"content": text[at : at + 8]})
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        yield event({"tool_calls": [{"index": 0, **call, "function": {**call["function"], "arguments": ""}}]})
        for at in range(0, len(arguments), 8):
            piece = {"index": 0, "function": {"arguments": arguments[at : at + 8]}}
            yield event({"tool_calls": [piece]})
    yield event({}, finish_reason=reason)
    last = {**common, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    yield f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode()


@contextmanager
def serving(server: OpenAiServer) -> Iterator[str]:
    """Serve, and give the base URL for clients."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(server))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()
        thread.join(10)


def read_the_first(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A model that answers with the first words of the first passage that it is shown, or else searches."""
    shown = str(messages[1]["content"])
    if "No passage is shown yet" in shown:
        return {"search": ["the pass"], "answered": False}
    number = shown.partition("[")[2].partition("]")[0]
    text = shown.partition("<text>\n")[2].partition("\n</text>")[0]
    statement = {"text": " ".join(text.split()[:2]), "passages": [number]}
    return {"answered": True, "statements": [statement], "search": []}
