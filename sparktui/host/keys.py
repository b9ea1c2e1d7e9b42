"""Which API key goes where: a server's own to its own origin, a proxy's to the proxy, none to anyone else."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from sparktui.schema.launch import LaunchSpec
from sparktui.server.ready import api_key

PROXY_KEY = "SPARKTUI_LOAD_API_KEY"  # what the proxy of load.url wants
_SELF = ("localhost", "127.0.0.1", "::1")
_PORTS = {"http": 80, "https": 443}


def load_keys(spec: LaunchSpec, load_url: str | None) -> tuple[str | None, str | None]:
    """The key for ``load_url`` (None: the server itself), and the server's own key for its /tokenize."""
    own = api_key(spec)
    if load_url is None or same_origin(load_url, spec.url):
        return own, own
    return os.environ.get(PROXY_KEY) or None, own


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have scheme, host and port in common (RFC 6454, section 4); this machine's names for
    itself are one host."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme, "" if host in _SELF else host, parts.port or _PORTS.get(parts.scheme)
