"""Fixtures that every kind of test may use."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.azurite import Azurite
from infra.local.dev import ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A real Azurite of this test process alone (of this xdist worker), on free ports, with data on disk.

    `azurite.connection_string` is what AzureWebJobsStorage has to be. Tests share it: use names of your own.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="toolbox-azurite-"))
    try:
        with Azurite.start(data_dir, free_ports=True) as instance:
            yield instance
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that names a free loopback port at each call. Prefer port 0 where the program takes it."""
    return ports.free_port
