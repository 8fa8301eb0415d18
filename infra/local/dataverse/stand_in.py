"""The stand-in as a value: started in this process for tests, or by `python -m infra.local.dataverse`."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from infra.local.dataverse.app import App as AsgiApp
from infra.local.dataverse.app import Site, State
from infra.local.dataverse.authority import POWER_PLATFORM, App, Authority
from infra.local.dataverse.environment import Environment
from infra.local.dataverse.faults import Faults
from infra.local.dataverse.powerplatform import PowerPlatform
from infra.local.dataverse.requests_log import RequestLog
from infra.local.dataverse.schema import stable_id
from infra.local.dataverse.server import HOST, ServerThread, listen, make_certificate
from infra.local.dataverse.tables import add_records

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from types import TracebackType

    from infra.local.dataverse.faults import Armed, Fault
    from infra.local.dataverse.requests_log import Logged

TENANT: Final = stable_id("tenant", "1")
CLIENT_ID: Final = stable_id("app", "1")


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """An environment to be had: who owns it, and which apps have a user there (None: all of the tenant)."""

    name: str
    tenant: str = TENANT
    apps: tuple[str, ...] | None = None
    accounts: int = 12


class StandIn:
    """A running stand-in; a context manager that stops it.

    Every environment has a port of its own, so that its address is a plain `https://127.0.0.1:PORT`. Token
    endpoint, Power Platform API and control API answer on each. `ca_file` is what clients have to trust.
    """

    def __init__(self, state: State, server: ServerThread, folder: Path) -> None:
        self._state = state
        self._server = server
        self._folder = folder
        self._sites = {site.environment.name: site for site in state.sites.values()}
        self.ca_file = folder / "ca.pem"
        self.faults = state.faults
        self.authority = state.authority
        self.power_platform = state.power_platform

    @classmethod
    def start(
        cls,
        environments: Sequence[EnvironmentSpec | str] = ("dev",),
        apps: Sequence[App] = (),
        *,
        port: int = 0,
        token_lifetime: float = 3600.0,
    ) -> Self:
        """Start one; `port` is the first environment's, the others follow it. Raises OSError, RuntimeError.

        Without `apps` there is one, CLIENT_ID of TENANT, with a secret made for this run.
        """
        registered = tuple(apps) or (App(CLIENT_ID, secrets.token_urlsafe(24), TENANT),)
        specs = [EnvironmentSpec(one) if isinstance(one, str) else one for one in environments]
        with contextlib.ExitStack() as undo:
            folder = Path(tempfile.mkdtemp(prefix="dataverse-stand-in-"))
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            sockets: list[socket.socket] = []
            sites: dict[int, Site] = {}
            for number, spec in enumerate(specs):
                sock = listen(port + number if port else 0)
                undo.callback(sock.close)
                sockets.append(sock)
                own = int(sock.getsockname()[1])
                environment = Environment(spec.name, spec.apps)
                add_records(environment, spec.accounts)
                sites[own] = Site(environment, spec.tenant, f"https://{HOST}:{own}")
            audiences = {POWER_PLATFORM, *(site.url for site in sites.values())}
            authority = Authority(registered, lambda: audiences, token_lifetime)
            state = State(sites, authority, Faults(), RequestLog(), PowerPlatform())
            server = ServerThread(AsgiApp(state), sockets, make_certificate(folder / "ca.pem"))
            server.start()
            undo.pop_all()
        return cls(state, server, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop, and remove the certificate's folder."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        """The environments' names."""
        return list(self._sites)

    def url(self, name: str | None = None) -> str:
        """The address of an environment, of the first one by default; no slash at the end."""
        return self._site(name).url

    def environment(self, name: str | None = None) -> Environment:
        """An environment, to put records in or look at them."""
        return self._site(name).environment

    @property
    def authority_url(self) -> str:
        """What takes the place of https://login.microsoftonline.com."""
        return self.url()

    @property
    def power_platform_url(self) -> str:
        """What takes the place of https://api.powerplatform.com."""
        return f"{self.url()}/powerplatform"

    @property
    def app(self) -> App:
        """The first app registration."""
        return next(iter(self.authority.apps.values()))

    def connection(self, name: str | None = None) -> dict[str, Any]:
        """What a client needs to know of an environment, the secret included."""
        app = self.app
        return {
            "url": self.url(name), "tenantId": self._site(name).tenant, "clientId": app.client_id,
            "clientSecret": app.secret, "authority": self.authority_url,
            "powerPlatformUrl": self.power_platform_url, "caFile": str(self.ca_file),
        }  # fmt: skip

    def arm(self, fault: Fault) -> Armed:
        """Put a fault in force."""
        return self.faults.arm(fault)

    def requests(self, resource: str | None = None, method: str | None = None) -> list[Logged]:
        """The requests so far, in order; of those whose resource begins so, and of a method."""
        found = [one for one in self._state.log.all() if resource is None or one.resource.startswith(resource)]
        return [one for one in found if method in {None, one.method}]

    def clear_requests(self) -> None:
        """Forget the requests so far."""
        self._state.log.clear()

    def _site(self, name: str | None) -> Site:
        if name is None:
            return next(iter(self._sites.values()))
        return self._sites[name]
