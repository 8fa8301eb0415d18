"""Fixtures that every kind of test may use."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.azurite import ACCOUNT_KEY, ACCOUNT_NAME, Azurite
from infra.local.dev import ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TESTS = Path(__file__).parent
#: More than all tests of a process ask for.
_OWN_ACCOUNTS = tuple(f"toolbox{number}" for number in range(200))
#: Folders whose tests take longest, or share what is slow to start, in the order in which they begin. What has
#: no place here comes after them.
_FIRST = (
    "acceptance/upstream", "acceptance", "acceptance/page", "acceptance/page/windows", "acceptance/windows",
    "acceptance/dev", "integration/faults", "integration/jobs", "integration/host", "integration",
)  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folder by folder, slow ones first; in a folder the order stays, which is a random one.

    With several processes each takes neighbouring tests: what the tests of a folder share (an app with many
    servers, for instance) starts in one of them, or two, and no long test is the last one that runs.
    """
    items.sort(key=lambda item: _place(item.path))


def _place(path: Path) -> tuple[int, str]:
    folder = path.parent.relative_to(_TESTS, walk_up=True).as_posix()
    begins = [number for number, first in enumerate(_FIRST) if f"{folder}/".startswith(f"{first}/")]
    # The longest name that fits: acceptance/page is not the place of acceptance/page/windows.
    return max(begins, key=lambda number: len(_FIRST[number]), default=len(_FIRST)), folder


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A real Azurite of this test process alone (of this xdist worker), on free ports, with data on disk.

    `azurite.connection_string` is what AzureWebJobsStorage has to be. Tests share it: use names of your own, or
    take an account of your own from `new_storage`.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="toolbox-azurite-"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            accounts = (ACCOUNT_NAME, *_OWN_ACCOUNTS)
            patch.setenv("AZURITE_ACCOUNTS", ";".join(f"{name}:{ACCOUNT_KEY}" for name in accounts))
            started = Azurite.start(data_dir, free_ports=True)
        with started:
            yield started
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def new_storage(azurite: Azurite) -> Callable[[], str]:
    """A function that gives the connection string of an account that nobody uses, at each call.

    For an app with tools or settings of its own: apps on one account take each other's queue messages, and
    a reaper deals with every row that it finds. Accounts share nothing but the process, which takes over a
    second of a processor to start. Tests that stop it, or look into its files, start one of their own.
    """
    names = iter(_OWN_ACCOUNTS)

    def new() -> str:
        name = next(names, None)
        assert name is not None, "all accounts are used: see _OWN_ACCOUNTS"
        return azurite.connection_string.replace(ACCOUNT_NAME, name)

    return new


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that names a free loopback port at each call. Prefer port 0 where the program takes it."""
    return ports.free_port
