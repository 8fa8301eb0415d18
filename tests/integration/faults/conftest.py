"""One Azurite with many accounts: apps on different ones share nothing but its process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.local.azurite import ACCOUNT_KEY, Azurite
from tests.integration.faults.support import ACCOUNTS, Site


@pytest.fixture(scope="session")
def many_accounts() -> Iterator[Azurite]:
    folder = Path(tempfile.mkdtemp(prefix="toolbox-faults-"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AZURITE_ACCOUNTS", ";".join(f"{name}:{ACCOUNT_KEY}" for name in ACCOUNTS))
            running = Azurite.start(folder, free_ports=True)
        with running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def free_account(many_accounts: Azurite) -> Callable[[], str]:
    """A function that names an account that nobody uses, at each call."""
    return iter(ACCOUNTS).__next__


@pytest.fixture
def site(many_accounts: Azurite, free_account: Callable[[], str], tmp_path: Path) -> Iterator[Site]:
    """An account that is empty, and no host on it yet."""
    with Site(many_accounts, free_account(), tmp_path / "site") as made:
        yield made
