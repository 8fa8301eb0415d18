"""From the blocks of an upstream result, as JSON, to `ContentBlock`s. Pure, and total: no JSON makes it raise.

The size of base64 data is taken from its length: what is over the limit of an artifact is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from pydantic import AnyUrl, TypeAdapter

from shared.errors import ResultError
from shared.jobs.artifacts import MAX_BYTES
from shared.text import clean_text
from shared.tool.json_form import dumps, to_json
from shared.tool.media import media_type_of
from shared.upstream.content import base64_text
from shared.upstream.content.filenames import essence, last_part
from shared.upstream.content.model import (
    AudioContent,
    BinaryContent,
    BinaryForm,
    ContentBlock,
    ImageContent,
    TextContent,
)

type Wire = Mapping[str, Any]

#: Bytes at the beginning of some data that tell its kind.
_HEAD: Final = 1024
_COMMON: Final = frozenset({"type", "annotations", "_meta"})
_LINK_FIELDS: Final = frozenset({"uri", "name", "title", "description", "mimeType", "size", "icons"})
_RESOURCE_FIELDS: Final = frozenset({"uri", "mimeType", "text", "blob", "_meta"})
_URL = TypeAdapter(AnyUrl)


class _Media(Protocol):
    def __call__(
        self,
        *,
        data: str,
        mime_type: str,
        annotations: dict[str, Any] | None,
        meta: dict[str, Any] | None,
        extra: dict[str, Any] | None,
    ) -> ContentBlock: ...


def blocks_of(content: object) -> Iterator[ContentBlock]:
    """The blocks of a result's `content`, in their order. What is no block becomes a text."""
    if content is None:
        return
    for item in content if isinstance(content, list | tuple) else (content,):
        if isinstance(item, Mapping):
            kind = item.get("type")
            read = _READERS.get(kind, _foreign) if isinstance(kind, str) else _foreign
            yield from read(item)
        else:
            yield TextContent(text=item if isinstance(item, str) else _json(item))


def left_out(what: str, reason: str) -> TextContent:
    """The text that stands where something could not be passed on. `what`: like `An image (image/png)`."""
    return TextContent(text=f"[{what} was left out: {reason}]")


def sized(what: str, mime_type: str | None, size: int | None = None, uri: str | None = None) -> str:
    """`An image (image/png, 1234 bytes, file:///a.png)`: what `left_out` speaks of."""
    facts = [mime_type, None if size is None else f"{size} bytes", uri]
    told = ", ".join(fact[:200] for fact in facts if fact)
    return f"{what} ({told})" if told else what


def _text(wire: Wire) -> Iterator[ContentBlock]:
    text = wire.get("text")
    if not isinstance(text, str):
        yield from _foreign(wire)
    elif len(wire) == 2:
        yield TextContent(text=text)
    else:
        yield TextContent(text=text, **_common(wire, frozenset({"text"})))


def _image(wire: Wire) -> Iterator[ContentBlock]:
    return _media(wire, "image", "An image", ImageContent)


def _audio(wire: Wire) -> Iterator[ContentBlock]:
    return _media(wire, "audio", "An audio recording", AudioContent)


def _media(wire: Wire, kind: str, what: str, make: _Media) -> Iterator[ContentBlock]:
    data, declared = wire.get("data"), wire.get("mimeType")
    if not isinstance(data, str):
        yield from _foreign(wire)
        return
    mime_type = declared if isinstance(declared, str) and declared else None
    try:
        text, body = _checked(data)
    except base64_text.Base64Error as fault:
        yield left_out(sized(what, mime_type), str(fault))
        return
    if not body:
        yield left_out(sized(what, mime_type), "it is empty")
        return
    common = _common(wire, frozenset({"data", "mimeType"}))
    if mime_type is not None and essence(mime_type).startswith(f"{kind}/"):
        yield make(data=text, mime_type=mime_type, **common)
        return
    # A type that contradicts the block: the data's own beginning decides.
    found = media_type_of(body[:_HEAD])
    if declared is not None:
        common["extra"] = {**(common["extra"] or {}), "mimeType": declared}
    if found is not None and found.startswith(f"{kind}/"):
        yield make(data=text, mime_type=found, **common)
        return
    common["extra"] = {**(common["extra"] or {}), "type": kind}
    yield BinaryContent(data=body, mime_type=mime_type or found, **common)


def _resource(wire: Wire) -> Iterator[ContentBlock]:
    resource = wire.get("resource")
    if not isinstance(resource, Mapping):
        yield from _foreign(wire)
        return
    text, blob, uri = (_text_or_none(resource.get(key)) for key in ("text", "blob", "uri"))
    if text is None and blob is None:
        if uri is None or not is_absolute(uri):
            yield from _foreign(wire)
            return
        yield from _link({**resource, **{key: wire[key] for key in _COMMON if key in wire}})
        return
    common = _common(wire, frozenset({"resource"}))
    mime_type = _text_or_none(resource.get("mimeType")) or None
    rest = {key: value for key, value in resource.items() if key not in _RESOURCE_FIELDS and value is not None}
    inner = resource.get("_meta")
    if inner is not None and not isinstance(inner, dict):
        rest["_meta"] = inner
    if rest:
        common["extra"] = {**(common["extra"] or {}), "resource": rest}
    fields = {"mime_type": mime_type, "uri": uri, "resource_meta": inner if isinstance(inner, dict) else None}
    if text is not None:
        yield BinaryContent(data=clean_text(text).encode(), form=BinaryForm.TEXT, **fields, **common)
    if blob is not None:
        try:
            body = _checked(blob)[1]
        except base64_text.Base64Error as fault:
            yield left_out(sized("A resource", mime_type, uri=uri), str(fault))
        else:
            yield BinaryContent(data=body, **fields, **common)


def _link(wire: Wire) -> Iterator[ContentBlock]:
    uri = wire.get("uri")
    if not isinstance(uri, str) or not is_absolute(uri):
        yield from _foreign(wire)
        return
    common = _common(wire, _LINK_FIELDS)
    found: dict[str, Any] = {}
    for key, name in (
        ("name", "name"),
        ("title", "title"),
        ("description", "description"),
        ("mimeType", "mime_type"),
    ):
        found[name] = _text_or_none(wire.get(key))
    size, icons = wire.get("size"), wire.get("icons")
    found["size"] = size if is_size(size) else None
    found["icons"] = icons if isinstance(icons, list) else None
    odd = {
        key: wire[key]
        for key in _LINK_FIELDS - {"uri"}
        if wire.get(key) is not None and found["mime_type" if key == "mimeType" else key] is None
    }
    if odd:
        common["extra"] = {**(common["extra"] or {}), **odd}
    if not found["name"]:
        found["name"] = last_part(uri) or uri
    yield BinaryContent(data=b"", uri=uri, form=BinaryForm.LINK, **found, **common)


def _foreign(wire: Wire) -> Iterator[ContentBlock]:
    """A block of a type that is not known here, or of a known one with a field of the wrong kind."""
    kind, data, mime_type = wire.get("type"), wire.get("data"), wire.get("mimeType")
    if isinstance(kind, str) and isinstance(data, str) and isinstance(mime_type, str) and mime_type:
        what = sized(f"Content of type '{kind[:60]}'", mime_type)
        try:
            body = _checked(data)[1]
        except _TooLargeError as fault:
            yield left_out(what, str(fault))
            return
        except base64_text.Base64Error:
            pass  # data of another form: it stays in the JSON
        else:
            common = _common(wire, frozenset({"data", "mimeType"}))
            common["extra"] = {**(common["extra"] or {}), "type": kind}
            uri = f"toolbox://content/{quote(clean_text(kind), safe='')}"
            yield BinaryContent(data=body, mime_type=mime_type, uri=uri, **common)
            return
    yield TextContent(text=_json(dict(wire)))


_READERS: Final[Mapping[str, Callable[[Wire], Iterator[ContentBlock]]]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _link,
}


class _TooLargeError(base64_text.Base64Error):
    """The data is over the limit of an artifact."""


def _checked(data: str) -> tuple[str, bytes]:
    """Base64 without white space, and its bytes. Raises `Base64Error`, before decoding what is too large."""
    size = base64_text.size_of(data)
    if size > MAX_BYTES:
        raise _TooLargeError(f"it has {size} bytes, and {MAX_BYTES} (100 MiB) is the most that is passed on")
    return base64_text.checked(data)


def _common(wire: Wire, own: frozenset[str]) -> dict[str, Any]:
    """The attributes that every block has. `own`: the fields that the block's type has."""
    notes, meta = wire.get("annotations"), wire.get("_meta")
    extra = {
        key: value for key, value in wire.items() if key not in _COMMON and key not in own and value is not None
    }
    if notes is not None and not isinstance(notes, dict):
        extra["annotations"] = notes
    if meta is not None and not isinstance(meta, dict):
        extra["_meta"] = meta
    return {
        "annotations": notes if isinstance(notes, dict) else None,
        "meta": meta if isinstance(meta, dict) else None,
        "extra": extra or None,
    }


def is_absolute(uri: str) -> bool:
    """Whether strict clients take it: they fail a whole result for one uri that they cannot read."""
    try:
        _URL.validate_python(uri)
    except ValueError:
        return False
    return True


def is_size(value: object) -> bool:
    """Whether it is a number of bytes that the host can read: 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _json(value: Any) -> str:
    try:
        return dumps(to_json(value))
    except ResultError as error:
        return f"[Content was left out: {error.message}]"
