"""What a tool's own process may write, and what becomes of its job when it writes anything else."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import ToolboxError
from shared.jobs.isolation import frames, grammar, process, run
from shared.jobs.isolation.ending import Ending
from shared.jobs.model import ErrorCode, Status
from shared.redaction import Redactor
from shared.tool.content import McpResourceLinkContent
from shared.tool.context import Context
from shared.tool.result import Wrapped, text_of
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.jobs.isolation_support import Bench, contract

WRITES = """
import base64
import gc

from shared.jobs.isolation.channel import Channel


def invokeHeadless(input, context):
    (channel,) = [found for found in gc.get_objects() if isinstance(found, Channel)]
    context.logger.info("before")
    for frame in input["frames"]:
        channel.send_frame(base64.b64decode(frame))
    return {"n": 1}
"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "image"]), "text": st.text()}), max_size=2
)
#: Values that are right somewhere, so that messages get far.
LIKELY = st.sampled_from(
    ["", "text", "json", "a.txt", "text/csv", "ToolError", "Unexpected", "JobEndedError", "eA==", *grammar.ASKS]
) | st.fixed_dictionaries({"result": st.text(max_size=3)})
NAMES = sorted({name for fields in grammar.MESSAGES.values() for name in fields})


@st.composite
def messages(draw: st.DrawFn) -> JsonObject:
    kind = draw(st.sampled_from(list(grammar.MESSAGES)) | JSON)
    wanted = grammar.MESSAGES.get(kind, {}) if isinstance(kind, str) else {}
    names = draw(st.sets(st.sampled_from(NAMES), max_size=2)) | set(wanted)
    names -= draw(st.sets(st.sampled_from(NAMES), max_size=1))
    return {"type": kind, **{name: draw(JSON | LIKELY | BLOCKS) for name in sorted(names)}}


class Artifacts:
    """Reads a file to its end, as storage would."""

    def write(self, name: str, data: Any, mime_type: str | None = None) -> McpResourceLinkContent:
        for part in data:
            assert isinstance(part, bytes)
        return McpResourceLinkContent(uri="artifact://x/y", name="y")


class Desk:
    def asked(self, message: JsonObject, answer: Any) -> None:
        assert message["what"] in grammar.ASKS
        assert isinstance(message["number"], int)

    def drop(self, number: int) -> None:
        assert isinstance(number, int)


def context() -> Context:
    return Context(
        tool_id="t", tool_name="t", invocation_mode=Mode.TWO_WAY, execution_mode=ExecutionMode.HEADLESS,
        correlation_id="x", timeout_ms=1_000, owner="o", artifacts=Artifacts(),
    )  # fmt: skip


def outcome(written: bytes) -> Any:
    """What becomes of a process that writes this and ends: a result, or an error of ours."""
    reading, writing = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)

    def write() -> None:
        frames.write(writing, written)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    pipe = SimpleNamespace(fileno=lambda: reading)
    talking: Any = SimpleNamespace(stdin=SimpleNamespace(fileno=lambda: nowhere), stdout=pipe)
    child = process.Child({}, context(), str, lambda: None, Desk())
    try:
        message, fault = None, ""
        try:
            message = child._talk(talking, b"")
        except frames.FrameError as error:
            fault = str(error)
        return run._answer(Ending(message, fault), context(), Redactor())
    except ToolboxError as error:
        return error
    finally:
        while os.read(reading, 65536):
            pass
        writer.join()
        os.close(reading)
        os.close(nowhere)


@settings(deadline=None, max_examples=400)
@given(st.lists(messages(), max_size=4))
def test_whatever_a_process_says_is_an_answer_or_an_error(said: list[JsonObject]) -> None:
    found = outcome(b"".join(map(frames.packed, said)))
    if not isinstance(found, ToolboxError):
        assert isinstance(found.text, str)
        assert isinstance(found.structured, dict | None)
        if found.structured is not None:
            text_of(found)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.binary(max_size=12).map(frames.framed) | st.binary(max_size=6), max_size=4))
def test_whatever_bytes_a_process_writes_are_an_error(written: list[bytes]) -> None:
    assert isinstance(outcome(b"".join(written)), ToolboxError)


@given(messages())
def test_a_message_that_passes_is_what_it_must_be(message: JsonObject) -> None:
    try:
        grammar.checked(message)
    except frames.FrameError:
        return  # what it says is looked at below
    fields = grammar.MESSAGES[message["type"]]
    assert {name for name, field in fields.items() if field.is_required} <= set(message)
    if message["type"] == "result":
        assert Wrapped(message["wrapped"]) in Wrapped


GOOD: dict[str, JsonObject] = {
    "file": {"type": "file", "name": "a", "mimeType": "text/csv"},
    "part": {"type": "part", "data": "eA=="},
    "end": {"type": "end", "complete": True},
    "result": {
        "type": "result",
        "content": [],
        "structured": None,
        "isError": False,
        "meta": {},
        "wrapped": "",
    },
}


def deep(levels: int) -> bytes:
    body = json.dumps({**GOOD["result"], "structured": {"a": None}}).replace(
        "null", "[" * levels + "]" * levels
    )
    return frames.framed(body.encode())


BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (frames.framed(b"no"), "a frame that is no JSON"),
    "no object": (frames.framed(b"[]"), "a frame that is no object"),
    "too long": (struct.pack(">I", 2**32 - 1), "a frame of 4294967295 bytes"),
    "no type": (frames.packed({}), "a message whose type is null"),
    "unknown type": (frames.packed({"type": "hello"}), "a message whose type is the text 'hello'"),
    "a field is missing": (
        frames.packed({"type": "file", "name": "a"}),
        "a message 'file' without 'mimeType', which must be a text",
    ),
    "a field of another kind": (
        frames.packed({**GOOD["result"], "content": {}}),
        "a message 'result' whose 'content' is an object, not a list of content blocks",
    ),
    "a text block without a text": (
        frames.packed({**GOOD["result"], "content": [{"type": "text"}]}),
        "whose 'content' is a list, not a list of content blocks",
    ),
    "an unknown way to wrap": (
        frames.packed({**GOOD["result"], "wrapped": "x"}),
        "whose 'wrapped' is the text 'x'",
    ),
    "nothing is wrapped": (frames.packed({**GOOD["result"], "wrapped": "json"}), "without 'result'"),
    "nested too deeply": (deep(5_000), "nested more than 800 deep"),
    "a part without a file": (frames.packed(GOOD["part"]), "a message 'part' where none is expected"),
    "a file in a file": (frames.packed(GOOD["file"]) * 2, "a message 'file' where none is expected"),
    "no base64": (
        frames.packed(GOOD["file"]) + frames.packed({**GOOD["part"], "data": "%"}),
        "a part that is no base64",
    ),
    "an unknown question": (
        frames.packed({"type": "ask", "number": 1, "what": "everything", "given": {}}),
        "whose 'what' is the text 'everything', not one of settings.read",
    ),
    "a question without its data": (
        frames.packed({"type": "ask", "number": 1, "what": "tools.launch", "given": {"tool": 5}}),
        "a message 'ask' for tools.launch whose 'tool' is a number, not a text",
    ),
    "an error of no kind": (
        frames.packed({"type": "error", "kind": 5}),
        "whose 'kind' is a number, not a text",
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("grammar")
    tools = root / "writing_tools"
    tools.mkdir()
    contract(tools / "writes", WRITES, idempotent=True)
    sys.path.append(str(root))
    yield Bench(Path(tools))
    sys.path.remove(str(root))


@pytest.mark.parametrize("case", BAD)
def test_a_process_that_writes_anything_else_is_ended_and_its_job_fails(bench: Bench, case: str) -> None:
    written, text = BAD[case]
    ended = bench.run("writes", {"frames": [base64.b64encode(written).decode()]})
    job = ended.job
    assert (job.status, job.error_code, job.attempt) == (Status.FAILED, ErrorCode.TOOL_ERROR, 1)
    assert job.error.startswith(
        "Tool 'writes' failed: the tool's process wrote something that is not a message to the worker: "
    )
    assert text in job.error
    assert "before" in ended.lines


def test_a_process_that_ends_inside_a_message_is_described_by_its_end(bench: Bench) -> None:
    """As one does that the system ends: it wrote nothing wrong, it was cut off."""
    cut = base64.b64encode(b"\0\0\0\x05ab").decode()
    assert isinstance(outcome(b"\0\0\0\x05ab"), ToolboxError)
    assert "wrote something" not in str(outcome(b"\0\0\0\x05ab"))
    # What follows fills the frame that was begun, so this one is no JSON.
    assert "no JSON" in bench.run("writes", {"frames": [cut]}).job.error
