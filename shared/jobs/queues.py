"""The names of the queues of jobs. Triggers are declared with them when the app starts: nothing is imported."""

from typing import Final

QUEUE: Final = "jobs"
POISON_QUEUE: Final = "jobs-poison"
