"""Which vLLM release the stand-in speaks like: its log's grammar, its flags, its metric names."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "0.27.1"
RELEASES = (
    "0.11.2",
    "0.13.0",
    "0.17.1",
    "0.19.1",
    "0.21.0",
    "0.24.0",
    "0.27.1",
    "0.30.0",
    "0.32.0",
    "0.33.0",
)


@dataclass(frozen=True, slots=True)
class Release:
    """One release, such as ``Release("0.27.1")``."""

    version: str = DEFAULT

    def since(self, version: str) -> bool:
        """Whether this release is ``version`` or a later one."""
        return _key(self.version) >= _key(version)

    def nearest(self, versions: tuple[str, ...]) -> str:
        """The latest of ``versions`` (ascending) that is not newer than this; the first one if all are."""
        return next((v for v in reversed(versions) if self.since(v)), versions[0])


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
