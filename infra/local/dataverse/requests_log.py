"""What was asked of the stand-in, for tests to look at; without secrets."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from infra.local.dataverse.call import parse_query

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT: Final = 20_000
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "x-identity-header"})
_SECRET_FIELDS: Final = frozenset({"client_secret", "client_assertion", "password", "refresh_token"})


@dataclass(slots=True)
class Logged:
    """A request. `token` is the serial number of its access token, `app` the client id of its caller."""

    number: int
    environment: str
    method: str
    path: str  # as it was sent
    query_string: str
    headers: dict[str, str]  # names in lower case; those with secrets are left out
    body: str
    app: str | None = None
    token: int | None = None
    status: int | None = None  # None: no answer was sent
    fault: str | None = None
    query: dict[str, str] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        """The path below `/api/data/v9.2/`, decoded; else the whole path, decoded."""
        path = unquote(self.path)
        _, mark, rest = path.partition("/api/data/")
        return rest.partition("/")[2] if mark else path

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.body)


class RequestLog:
    """The newest requests, in order of arrival. May be used from any thread."""

    def __init__(self) -> None:
        self._requests: deque[Logged] = deque(maxlen=_KEPT)
        self._count = 0
        self._lock = threading.Lock()

    def add(self, environment: str, method: str, path: str, query: str, headers: Mapping[str, str],
            body: bytes) -> Logged:  # fmt: skip
        """Note a request down."""
        shown = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        text = body.decode(errors="replace")
        if "x-www-form-urlencoded" in headers.get("content-type", ""):
            fields = parse_query(text)
            text = "&".join(f"{name}={'(removed)' if name in _SECRET_FIELDS else value}"
                            for name, value in fields.items())  # fmt: skip
        with self._lock:
            self._count += 1
            entry = Logged(self._count, environment, method, path, query, shown, text, query=parse_query(query))
            self._requests.append(entry)
        return entry

    def all(self) -> list[Logged]:
        """Every request that is still kept."""
        with self._lock:
            return list(self._requests)

    def clear(self) -> None:
        """Forget them."""
        with self._lock:
            self._requests.clear()

    def as_json(self) -> list[dict[str, Any]]:
        """Every request, for the control API."""
        return [asdict(entry) for entry in self.all()]
