"""Hosts for the tests of the local Functions host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tests.integration.host import support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class StartHost(Protocol):
    """Starts a host that ends with the test."""

    def __call__(
        self, *arguments: str, app: Path = support.FIXTURE, env: Mapping[str, str] | None = None
    ) -> support.Host:
        """See support.start."""
        ...


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Host]:
    """One host of the fixture app with HTTP and MCP only, shared by the tests that change nothing in it."""
    started = support.start(
        tmp_path_factory.mktemp("host"),
        "--no-triggers",
        "queue,timer",
        env={
            "AzureWebJobs.disabled_one.Disabled": "true",
            "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "200000",
        },
    )
    yield started
    support.close(started)


@pytest.fixture
def start_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartHost]:
    """Starts hosts of the test's own."""
    hosts: list[support.Host] = []

    def start(
        *arguments: str, app: Path = support.FIXTURE, env: Mapping[str, str] | None = None
    ) -> support.Host:
        hosts.append(support.start(tmp_path_factory.mktemp("own-host"), *arguments, app=app, env=env))
        return hosts[-1]

    yield start
    for host in hosts:
        support.close(host)
