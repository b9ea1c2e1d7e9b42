"""/metrics pages: what there is, and how it moved."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from tests.contract.server import Server
from tests.contract.wire import get
from tests.support import until

PREFIX = "vllm:"
_OURS = ("engine", "model_name")  # labels that every family has


@dataclass(frozen=True)
class Family:
    """Name, type, label names; the bucket bounds of a histogram."""

    name: str
    kind: str
    labels: frozenset[str]
    bounds: tuple[str, ...] = ()

    def __str__(self) -> str:
        row = f"{self.name} {self.kind} {','.join(sorted(self.labels))}"
        return f"{row} {','.join(self.bounds)}" if self.bounds else row


def page(server: Server) -> str:
    answer = get(server, "/metrics")
    assert answer.status_code == 200
    return answer.text


def families(text: str) -> list[Family]:
    """Every family of the page, in its order."""
    found = []
    for family in text_string_to_metric_families(text):
        labels = frozenset(name for sample in family.samples for name in sample.labels if name != "le")
        bounds = dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels)
        found.append(Family(family.name, family.type, labels, tuple(bounds)))
    return found


def label_values(text: str, sample_name: str, label: str) -> list[str]:
    """The values that ``label`` takes, in the page's order."""
    return [
        sample.labels[label]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == PREFIX + sample_name
    ]


@dataclass(frozen=True)
class Counts:
    """Values by sample name without ``vllm:``, followed by the values of its own labels."""

    values: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)

    def __sub__(self, before: Counts) -> Counts:
        return Counts({name: value - before[name] for name, value in self.values.items()})

    def all_of(self, name: str) -> dict[str, float]:
        """The samples of a family by their own labels' values."""
        start = f"{name}|"
        return {key.removeprefix(start): value for key, value in self.values.items() if key.startswith(start)}


def counts(server: Server) -> Counts:
    values = {}
    for family in text_string_to_metric_families(page(server)):
        for sample in family.samples:
            if sample.name.startswith(PREFIX) and "le" not in sample.labels:
                own = [value for name, value in sorted(sample.labels.items()) if name not in _OURS]
                values["|".join([sample.name.removeprefix(PREFIX), *own])] = sample.value
    return Counts(values)


def settled(server: Server, before: Counts, requests: int) -> Counts:
    """How the counts moved since ``before``, once ``requests`` more have finished and nothing runs."""

    def moved() -> Counts | None:
        change = counts(server) - before
        return change if finished(change) == requests and is_idle(server) else None

    result = until(moved, server.limits.answer, f"{requests} requests counted")
    assert result is not None
    return result


def finished(change: Counts) -> float:
    return sum(change.all_of("request_success_total").values())


def is_idle(server: Server) -> bool:
    now = counts(server)
    return (now["num_requests_running"], now["num_requests_waiting"]) == (0, 0)
