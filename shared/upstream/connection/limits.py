"""Every bound on what an upstream server can make this process do."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

#: Bytes of one message on any transport. A result of this app is at most 64 MiB, so a larger answer could not
#: be passed on; it is refused while it arrives, before anything of it is decoded.
MESSAGE_BYTES: Final = 64 * MIB

#: Messages that wait to be handled, and bytes of them, at which no more are read from a server, and at which
#: they are again. One more message of any size may have come by then.
WAITING_MOST, WAITING_AGAIN = 256, 64
WAITING_BYTES, WAITING_BYTES_AGAIN = 8 * MIB, 2 * MIB

#: Bytes of one line of a server's log, and of the whole tail that is kept.
LOG_LINE_BYTES: Final = 16 * 1024
LOG_TAIL_BYTES: Final = 32 * 1024

#: Pages and entries of one listing. A server with more than this never stops, or is no tool server.
LIST_PAGES: Final = 200
LIST_ENTRIES: Final = 10_000

#: Seconds between two listings that notifications asked for; doubled while a server notifies at every listing.
REFRESH_PAUSE: Final = 0.05
REFRESH_LONGEST_PAUSE: Final = 60.0

#: The part of the time to connect that the probe for the 2026-07-28 protocol may take before the handshake of
#: older servers is tried: some of those never answer a request they do not know.
PROBE_SHARE: Final = 0.4

#: Characters of an upstream's own error text that go into ours.
ERROR_TEXT: Final = 600
#: Bytes that are read of an HTTP answer which is an error.
ERROR_BODY: Final = 4_096

#: Connections to one server that are kept while nothing runs on them, and seconds for which each is.
KEPT_CONNECTIONS: Final = 20
KEPT_SECONDS: Final = 5.0

#: Characters of a session's id that status shows. The whole id opens the session.
SESSION_ID_SHOWN: Final = 8
