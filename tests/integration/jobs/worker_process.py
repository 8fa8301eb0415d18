"""A worker in a process of its own, for tests that kill it: runs one job of `tools/dataverse_query`.

    python -m tests.integration.jobs.worker_process JOB_ID

Storage, connections and lease are told by the app's own settings, in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from tests.integration.jobs.queries import SEALER, query_tool


def main() -> None:
    settings = app_settings.load(os.environ)
    environments = Environments(ConnectionBook(settings.connections))
    use_resolver(environments.resolve)
    entry = query_tool()
    store = TableJobStore(Storage(settings.storage))
    worker = Worker({entry.spec.name: entry}, store, SEALER, settings, environments=environments)
    asyncio.run(worker.handle(json.dumps({"jobId": sys.argv[1]})))


if __name__ == "__main__":
    main()
