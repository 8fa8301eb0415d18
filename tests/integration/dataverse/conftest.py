"""Fixtures of the stand-in's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.dataverse.stand_in import StandIn
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
