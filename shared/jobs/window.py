"""The window of a windowed job: who may open it, and what stands in the job's row about that. Pure.

    ticket    in the launch link, behind `#`; opens one window once, until it expires
    session   what a ticket, or the owner's token, is exchanged for; works for this one job
    page key  stands in the address of the tool's page, which sees it: it opens the page's files, nothing else

Tickets and sessions are 32 random bytes as text. Only their SHA-256 is kept, so no row opens a window; the page
key is made of a session's hash and leads back to none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

#: A link is opened soon or never: it may lie in a chat's history for long.
TICKET_LIFE: Final = timedelta(hours=1)
#: Sessions of one window that are known; a further one takes the place of the oldest.
MOST_SESSIONS: Final = 4

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
PAGE_KEY_LENGTH: Final = 32


class WindowState(StrEnum):
    """What is told of a window."""

    #: Nobody has opened it yet.
    WAITING = "waiting"
    OPEN = "open"
    #: Somebody has given the result.
    DONE = "done"
    #: Closed without a result: by a person, at its deadline, or because the job was cancelled.
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a windowed job's row holds beside the job."""

    #: Where the app is reached, `https://host`, as its settings say; "" where they do not.
    base: str = ""
    #: Whether the caller has named the timeout: only then is the tool told of it, as in the original.
    timeout_asked: bool = False
    #: Hash of the ticket; "" once it was used.
    ticket: str = ""
    ticket_until: datetime | None = None
    #: Hashes of the sessions, oldest first.
    sessions: tuple[str, ...] = ()
    #: Whether it was closed without data.
    closed: bool = False

    def knows_ticket(self, ticket: str, now: datetime) -> bool:
        in_time = self.ticket_until is not None and now < self.ticket_until
        fits = hmac.compare_digest(hash_of("ticket", ticket), self.ticket or "-")
        return fits and in_time

    def knows_session(self, session: str) -> bool:
        """Compares with every session, in constant time."""
        presented = hash_of("session", session)
        found = [hmac.compare_digest(presented, known) for known in self.sessions]
        return any(found)

    def knows_page(self, key: str) -> bool:
        presented = key.encode("utf-8", "surrogatepass")
        found = [hmac.compare_digest(presented, page_key(known).encode()) for known in self.sessions]
        return any(found)

    def with_ticket(self, ticket: str, until: datetime) -> Window:
        return replace(self, ticket=hash_of("ticket", ticket), ticket_until=until)

    def with_session(self, session: str, *, drop_ticket: bool) -> Window:
        sessions = (*self.sessions, hash_of("session", session))[-MOST_SESSIONS:]
        if drop_ticket:
            return replace(self, sessions=sessions, ticket="", ticket_until=None)
        return replace(self, sessions=sessions)

    def to_text(self) -> str:
        """As the row holds it."""
        until = None if self.ticket_until is None else self.ticket_until.astimezone(UTC).isoformat()
        kept = {
            "base": self.base,
            "timeoutAsked": self.timeout_asked,
            "ticket": self.ticket,
            "ticketUntil": until,
            "sessions": list(self.sessions),
            "closed": self.closed,
        }
        return json.dumps({name: value for name, value in kept.items() if value})

    @classmethod
    def of_text(cls, text: str) -> Window:
        """The inverse. Raises `ValueError`, `TypeError`, `AttributeError` for another text."""
        kept = json.loads(text)
        until = kept.get("ticketUntil")
        return cls(
            base=kept.get("base", ""),
            timeout_asked=kept.get("timeoutAsked", False),
            ticket=kept.get("ticket", ""),
            ticket_until=None if until is None else datetime.fromisoformat(until),
            sessions=tuple(kept.get("sessions", ())),
            closed=kept.get("closed", False),
        )


def new_secret() -> str:
    """A ticket or a session: 43 characters that may stand in a link."""
    return secrets.token_urlsafe(32)


def is_secret(text: object) -> bool:
    """Whether a text can be a ticket or a session."""
    return isinstance(text, str) and _SECRET.fullmatch(text) is not None


def hash_of(kind: str, secret: str) -> str:
    """`kind` keeps apart what a text is shown as: a ticket is no session."""
    return hashlib.sha256(f"{kind}\0{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def page_key(session_hash: str) -> str:
    return hashlib.sha256(f"page\0{session_hash}".encode()).hexdigest()[:PAGE_KEY_LENGTH]


def link(base: str, job_id: str, ticket: str = "") -> str:
    """The launch link. Without a ticket it is for the owner, who has the token."""
    return f"{base}/#window={job_id}" + (f".{ticket}" if ticket else "")
