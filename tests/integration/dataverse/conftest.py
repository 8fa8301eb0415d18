"""Fixtures of the stand-in's own tests, and of those that call the APIs against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.dataverse.stand_in import StandIn
from shared.apis.environment import use_resolver
from tests.integration.dataverse.methods_bench import Bench, environments_of, settings_for, started
from tests.integration.dataverse.support import Api, client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


@pytest.fixture
def api() -> Api:
    """A fresh environment, called without a server."""
    return Api()


@pytest.fixture
def dataverse() -> Iterator[StandIn]:
    """A stand-in with one environment."""
    with StandIn.start() as stand_in:
        yield stand_in


@pytest.fixture
def client(dataverse: StandIn) -> Iterator[httpx.Client]:
    """A client that trusts it."""
    with client_of(dataverse) as client:
        yield client


@pytest.fixture(scope="module")
def two_environments() -> Iterator[StandIn]:
    """A stand-in with two environments; one for a module's cases."""
    with started() as stand_in:
        yield stand_in


@pytest.fixture
def invocation(two_environments: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """An invocation with a connection to each of them, and with no token yet."""
    for name, value in settings_for(two_environments).items():
        monkeypatch.setenv(name, value)
    environments = environments_of(two_environments)
    use_resolver(environments.resolve)
    yield Bench(two_environments, environments)
    two_environments.faults.clear()
    use_resolver(None)
