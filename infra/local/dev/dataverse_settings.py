"""What the app has to be told to reach the stand-in: a connection, its secret, and whom to trust.

Everything is added to what the user has set. Only settings that exist for real environments are used, so that
nothing in the app knows of a stand-in: the connection's own keys (`auth.authority`, `powerPlatformUrl`), and
the variables by which the HTTP clients are told of certificates and of proxies.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.local.dev import paths
from infra.local.dev.console import DevError
from shared.apis.connections import reading
from shared.apis.connections.model import Auth, AuthType, Connection, EnvironmentKind, key_of
from shared.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.local.dev.dataverse import Place

NAME: Final = "Stand-in"
ID: Final = "dataverse-stand-in"
SECRET_SETTING: Final = "DATAVERSE_STAND_IN_SECRET"  # noqa: S105 - a setting's name
#: Variable -> where the certificates come from that its clients trust now, the first that is set. httpx (the
#: APIs) reads the first one, requests (azure-identity) the second.
_TRUST: Final = {
    "SSL_CERT_FILE": ("SSL_CERT_FILE", "SSL_CERT_DIR"),
    "REQUESTS_CA_BUNDLE": ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
}
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


def settings_for(
    place: Place, settings: Mapping[str, str], owners: Iterable[str], folder: Path
) -> dict[str, str]:
    """The variables to start the app with. `owners` may use the connection; files go to `folder`.

    Raises `DevError` when the user's own connections are illegal, or one of them has the name.
    """
    return {
        reading.SETTING: _connections(place, settings.get(reading.SETTING, ""), owners, folder),
        SECRET_SETTING: place.client_secret,
        **_trust(place, settings, folder),
        **_no_proxy(place, settings),
    }


def _connections(place: Place, configured: str, owners: Iterable[str], folder: Path) -> str:
    """The setting CONNECTIONS: a file, because a variable cannot be longer than 128 KiB."""
    own = _own(configured.strip())
    for connection in own:
        if connection.key == key_of(NAME) or connection.id == ID:
            field, value = ("name", NAME) if connection.key == key_of(NAME) else ("id", ID)
            raise DevError(
                f"{reading.SETTING} already has a connection with the {field} '{value}'; --dataverse adds one.",
                f"Give yours another {field}, or run without --dataverse.",
            )
    auth = Auth(
        AuthType.CLIENT_SECRET,
        place.tenant_id,
        place.client_id,
        secret_setting=SECRET_SETTING,
        authority=place.authority,
    )
    added = Connection(
        id=ID,
        name=NAME,
        url=place.url,
        environment=EnvironmentKind.DEV,
        auth=auth,
        power_platform_url=place.power_platform_url,
        owners=tuple(owners),
    )
    text = json.dumps([reading.to_json(connection) for connection in (*own, added)])
    return f"@{_write(folder / 'connections.json', text.encode())}"


def _own(configured: str) -> list[Connection]:
    try:
        return reading.read_setting(configured)
    except SettingsError as error:
        raise DevError(error.message, "Correct it in local.settings.json or in the environment.") from error


def _trust(place: Place, settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """For each kind of client a file with the certificates that it trusts now, and the stand-in's."""
    added = place.ca_file.read_bytes()
    return {
        name: str(_write(folder / f"{name.lower()}.pem", _certificates(settings, sources) + b"\n" + added))
        for name, sources in _TRUST.items()
    }


def _certificates(settings: Mapping[str, str], sources: Iterable[str]) -> bytes:
    import certifi

    name, text = next(((name, settings[name]) for name in sources if settings.get(name)), ("", certifi.where()))
    places = text.split(os.pathsep) if name.endswith("_DIR") else [text]
    try:
        contents = [file.read_bytes() for place in places for file in _files(paths.REPO / place)]
    except OSError as error:
        raise DevError(
            f"{name} names what cannot be read ({error.strerror}).", "Correct it, or take it away."
        ) from error
    return b"\n".join(content for content in contents if _BEGIN in content)


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]


def _no_proxy(place: Place, settings: Mapping[str, str]) -> dict[str, str]:
    """The stand-in is on this machine, where no proxy leads."""
    host = urlsplit(place.url).hostname or ""
    known = settings.get("no_proxy") or settings.get("NO_PROXY") or ""
    value = known if known.strip() == "*" else ",".join(filter(None, (known, host)))
    return {"no_proxy": value, "NO_PROXY": value}


def _write(path: Path, content: bytes) -> Path:
    """For the owner alone, anew."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path
