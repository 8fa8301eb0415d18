"""Which traces are exported: `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`, as OpenTelemetry has them.

The decision is taken once, where a trace begins here, and travels on in `traceparent`: through the queue to the
job's attempts, and to other servers. Metrics count everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.telemetry.trace import Place

#: A ratio decides by these bits of a trace's id, so that all who decide by the same ratio decide the same.
_BITS: Final = (1 << 64) - 1

_ALL: Final = {"always_on": 1.0, "always_off": 0.0}
_BY_RATIO: Final = frozenset({"traceidratio", "microsoft.fixed_percentage"})
_BY_PARENT: Final = "parentbased_"
DEFAULT: Final = "parentbased_always_on"


@dataclass(frozen=True, slots=True)
class Sampler:
    """`ratio`: of the traces that begin here. `by_parent`: a span under another one goes by that one."""

    ratio: float = 1.0
    by_parent: bool = True

    def samples(self, trace_id: int, parent: Place | None) -> bool:
        if parent is not None and self.by_parent:
            return parent.sampled
        return self.of_root(trace_id)

    def of_root(self, trace_id: int) -> bool:
        return trace_id & _BITS < self.ratio * (1 << 64)


def sampler_of(environ: Mapping[str, str]) -> tuple[Sampler, str]:
    """(the sampler, what is wrong with the settings, or ""). What is wrong means the default."""
    name = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower() or DEFAULT
    by_parent = name.startswith(_BY_PARENT)
    kind = name.removeprefix(_BY_PARENT)
    if kind in _ALL:
        return Sampler(_ALL[kind], by_parent), ""
    if kind not in _BY_RATIO:
        return Sampler(), (
            "OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio or one of these after "
            "parentbased_; every trace is exported"
        )
    try:
        ratio = float(environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or 1.0)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        return Sampler(), "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1; every trace is exported"
    return Sampler(ratio, by_parent), ""
