"""What a fault proxy does to requests, and when: faults and the rules that let them happen. Pure."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    #: The connection is reset; the request is not passed on.
    RESET = "reset"
    #: The request is carried out; the connection is reset instead of answering.
    LOSE_ANSWER = "lose_answer"
    #: The request is carried out; the answer comes late.
    DELAY = "delay"
    #: The request is carried out; the connection ends in the middle of the answer's body, or else of its head.
    TRUNCATE = "truncate"
    #: Answered with an error in the service's form; the request is not passed on.
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind
    #: How late a delayed answer is.
    seconds: float = 0.0
    #: What a refusal says.
    status: int = 503
    retry_after: int | None = None


RESET: Final = Fault(Kind.RESET)
LOSE_ANSWER: Final = Fault(Kind.LOSE_ANSWER)
TRUNCATE: Final = Fault(Kind.TRUNCATE)


def delay(seconds: float) -> Fault:
    return Fault(Kind.DELAY, seconds=seconds)


def refuse(status: int = 503, retry_after: int | None = 1) -> Fault:
    return Fault(Kind.REFUSE, status=status, retry_after=retry_after)


@dataclass(slots=True)
class Rule:
    """When a fault happens. `matched`, `fired`: how often so far."""

    fault: Fault
    pattern: re.Pattern[str]
    body: re.Pattern[bytes] | None
    nth: frozenset[int]
    probability: float
    seed: str
    matched: int = 0
    fired: int = 0

    def fires(self, line: str, body: bytes) -> bool:
        if not self.pattern.search(line) or (self.body is not None and not self.body.search(body)):
            return False
        self.matched += 1
        chance = random.Random(f"{self.seed}/{self.matched}").random()
        fired = self.matched in self.nth or chance < self.probability
        self.fired += fired
        return fired
