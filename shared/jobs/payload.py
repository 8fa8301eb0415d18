"""What a job is given and what it gives back, as bytes at rest.

Input and the caller's token are sealed together, bound to their job and field, and erased when the job ends. So
is what an attempt keeps for the next one.

    sealed = version (1 byte, 0x01) | key id (4) | nonce (12) | AES-256-GCM ciphertext and tag
    key id = first 4 bytes of SHA-256 of the key
    associated data = job id | 0x00 | field name

Results are stored as they are (a job's owner reads them over HTTP), with a size and a digest when in a blob.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import dataclass, field
from typing import Any, Final

from shared import large_json
from shared.errors import InputError, PayloadError, ResultError, SettingsError
from shared.jobs.model import StoredBody
from shared.tool.json_form import dumps
from shared.tool.result import ToolResult, Wrapped
from shared.tool.spec import JsonObject

#: What goes into a table row; more goes to a blob. A property may have 64 KiB.
ROW_BYTES: Final = 32 * 1024
MAX_BODY_BYTES: Final = 64 * 1024 * 1024

_NO_KEY: Final = "TOOLBOX_SEAL_KEY is not set: a job's input cannot be stored. Set 32 random bytes as base64."
_VERSION = b"\x01"
_NONCE_BYTES = 12
_KEY_ID_BYTES = 4
#: The field that an input is sealed for.
INPUT_FIELD: Final = "in"


@dataclass(frozen=True, slots=True)
class Input:
    """What a run of a job is given."""

    arguments: JsonObject
    auth_token: str | None = field(default=None, repr=False)
    #: Facts of the call that made the job, see `ToolCall`.
    call: JsonObject = field(default_factory=dict)
    #: Ids of the saved connections that the call named, by slot.
    connections: tuple[str, ...] = ()
    #: Keys and tokens among the call's request headers, for redaction: nothing else is done with them.
    secrets: tuple[str, ...] = field(default=(), repr=False)
    #: How many tools' calls the call was within.
    depth: int = 0
    #: The project that the call was made in.
    project: str | None = None


class Sealer:
    """Seals with the first key, opens with any. `keys`: 32 bytes each."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = {_key_id(key): key for key in keys}
        self._current = keys[0] if keys else None

    def seal(self, job_id: str, data: bytes, field_name: str = INPUT_FIELD) -> bytes:
        """`field_name`: what of the job it is. Raises `SettingsError` when there is no key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if self._current is None:
            raise SettingsError(_NO_KEY)
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = AESGCM(self._current).encrypt(nonce, data, _associated(job_id, field_name))
        return b"".join((_VERSION, _key_id(self._current), nonce, ciphertext))

    def cursor(self, owner: str, token: str) -> str:
        """A page's token as its owner gets it: it may name somebody else's job, and works for nobody else."""
        return base64.urlsafe_b64encode(self.seal(_cursor_of(owner), token.encode())).decode().rstrip("=")

    def token(self, owner: str, cursor: str) -> str:
        """The inverse of `cursor`. Raises `InputError`."""
        try:
            sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            return self.open(_cursor_of(owner), sealed).decode()
        except (ValueError, PayloadError):
            raise InputError("cursor: must be one that an earlier page gave") from None

    def digests(self, purpose: str, data: bytes) -> tuple[str, ...]:
        """HMAC-SHA256 under every key, the current one first: nobody without a key can guess what it is of.

        `purpose` keeps digests of different things apart. Raises `SettingsError` when there is no key.
        """
        if self._current is None:
            raise SettingsError(_NO_KEY)
        older = [key for key in self._keys.values() if key != self._current]
        message = purpose.encode() + b"\0" + data
        return tuple(hmac.new(key, message, hashlib.sha256).hexdigest() for key in (self._current, *older))

    def open(self, job_id: str, sealed: bytes, field_name: str = INPUT_FIELD) -> bytes:
        """Raises `PayloadError` that names the setting or the payload."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        head = len(_VERSION) + _KEY_ID_BYTES
        if sealed[:1] != _VERSION or len(sealed) < head + _NONCE_BYTES:
            raise PayloadError("The job's stored input is damaged.")
        key = self._keys.get(sealed[1:head])
        if key is None:
            raise PayloadError(
                "The job's input was sealed with a key that TOOLBOX_SEAL_KEY and TOOLBOX_SEAL_KEYS do not hold."
            )
        nonce, ciphertext = sealed[head : head + _NONCE_BYTES], sealed[head + _NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, ciphertext, _associated(job_id, field_name))
        except InvalidTag:
            raise PayloadError("The job's stored input was changed or belongs to another job.") from None


def pack_input(given: Input) -> bytes:
    body: dict[str, Any] = {"input": given.arguments}
    if given.auth_token is not None:
        body["authToken"] = given.auth_token
    if given.call:
        body["call"] = given.call
    if given.connections:
        body["connections"] = list(given.connections)
    if given.secrets:
        body["secrets"] = list(given.secrets)
    if given.depth:
        body["depth"] = given.depth
    if given.project is not None:
        body["project"] = given.project
    # Exactly as it came: what a lone surrogate means is the tool's business.
    data = large_json.dumps(body).encode("utf-8", "surrogatepass")
    if len(data) > MAX_BODY_BYTES:
        raise PayloadError(
            f"The input has {len(data)} bytes as JSON; a job takes at most {MAX_BODY_BYTES} (64 MiB)."
        )
    return data


def unpack_input(data: bytes) -> Input:
    body = large_json.loads(data.decode("utf-8", "surrogatepass"))
    connections = tuple(body.get("connections", ()))
    return Input(
        body["input"],
        body.get("authToken"),
        body.get("call", {}),
        connections,
        tuple(body.get("secrets", ())),
        body.get("depth", 0),
        body.get("project"),
    )


def pack_result(result: ToolResult) -> bytes:
    """The bytes of a finished job's answer. Raises `ResultError` when it is too large."""
    body: dict[str, Any] = {"structured": result.structured}
    if result.content:
        body["content"] = list(result.content)
    if result.wrapped:
        body["wrapped"] = str(result.wrapped)
    if result.meta:
        body["meta"] = result.meta
    data = dumps(body).encode()
    if len(data) > MAX_BODY_BYTES:
        raise ResultError(
            f"The result has {len(data)} bytes as JSON; a job keeps at most {MAX_BODY_BYTES} (64 MiB)."
        )
    return data


def unpack_result(data: bytes) -> ToolResult:
    body = large_json.loads(data.decode())
    return ToolResult(
        tuple(body.get("content", ())),
        body.get("structured"),
        meta=body.get("meta", {}),
        wrapped=Wrapped(body.get("wrapped", "")),
    )


def stored_body(data: bytes, attempt: int = 1) -> StoredBody:
    """How `data` is kept: in the row when it is small, else in a blob of the attempt's."""
    if len(data) <= ROW_BYTES:
        return StoredBody(len(data), inline=data)
    return StoredBody(len(data), hashlib.sha256(data).hexdigest(), attempt)


def check_body(body: StoredBody, data: bytes | None) -> bytes:
    """A blob's bytes, if they are the ones that were stored. Raises `PayloadError`."""
    if data is None:
        raise PayloadError("The job's stored result is gone.")
    if len(data) != body.size or hashlib.sha256(data).hexdigest() != body.sha256:
        raise PayloadError("The job's stored result was changed.")
    return data


def _cursor_of(owner: str) -> str:
    return f"cursor of {owner}"


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:_KEY_ID_BYTES]


def _associated(job_id: str, field_name: str) -> bytes:
    return f"{job_id}\0{field_name}".encode()
