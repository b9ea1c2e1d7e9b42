"""What load and probe share: a server by its URL, its model, the files that are written."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from sparktui.commands.launch import Missing, Usage
from sparktui.schema.codec import dumps
from sparktui.schema.text import printable
from sparktui.server import ready

STDOUT = "-"
_ENDINGS = ("/metrics", "/v1/chat/completions", "/v1")  # what users paste: other tools want those


def base_url(text: str) -> str:
    """argparse type: a base URL without a slash at its end; ``host:port`` is one, a path may follow."""
    url = text if "//" in text else f"http://{text}"
    if "@" in url.partition("//")[2].partition("/")[0]:  # before anything else is said: it would be quoted
        raise argparse.ArgumentTypeError("a URL must hold no secret: set VLLM_API_KEY in the environment")
    try:
        parts = urlsplit(url)
        port = parts.port
        httpx.Request("GET", url)
    except (ValueError, httpx.InvalidURL) as exc:  # an encoding error of a host name is a ValueError
        why = f": {exc}" if _shown(text) == text else ""
        raise argparse.ArgumentTypeError(f"{_shown(text)!r} is not a URL{why}") from None
    bare = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    if not bare or (port is None and parts.netloc.endswith(":")):
        raise argparse.ArgumentTypeError(f"{_shown(text)!r} is not a URL like http://127.0.0.1:8000")
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _shown(text: str) -> str:
    """What may be quoted of a URL: nothing that may be a secret, so no user, password, query or fragment."""
    if "@" in text:  # in one that is wrong nobody knows where the password ends
        return "…"
    address = re.split(r"[?#]", text, maxsplit=1)[0]
    return address if address == text else f"{address}?…"


def check_writable(target: str | None) -> None:
    """Whether a file can be written there; nothing is opened, made or touched for it, since a reader of a
    named pipe would see its end. Raises Usage."""
    if target is None or target == STDOUT:
        return
    try:
        wrong = _obstacle(Path(target))
    except OSError as exc:  # a name too long
        raise unwritable(target, exc) from None
    if wrong:
        raise unwritable(target, OSError(wrong, os.strerror(wrong)))


def _obstacle(path: Path) -> int:
    """An errno, or 0."""
    if path.is_dir():
        return errno.EISDIR
    if path.exists():
        return 0 if os.access(path, os.W_OK) else errno.EACCES
    folder = Path(os.path.realpath(path)).parent  # a link may name a file to be made
    if not folder.is_dir():
        return errno.ENOTDIR if folder.exists() else errno.ENOENT
    return 0 if os.access(folder, os.W_OK) else errno.EACCES


def write_json(target: str, value: Any) -> None:
    """To a file, or to stdout for ``-``. Raises Usage."""
    data = dumps(value, indent=True) + b"\n"
    if target == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(target).write_bytes(data)
    except OSError as exc:
        raise unwritable(target, exc) from None


def unwritable(target: str, exc: OSError) -> Usage:
    """What to say of a file that can't be written."""
    return Usage(f"{target}: {exc.strerror or exc}")


async def first_model(http: httpx.AsyncClient, url: str) -> str:
    """The first model that the server names. Raises Missing when there is no server or no model."""
    try:
        models = await ready.served_models(http, url)
    except ready.NotReady as exc:
        raise Missing(printable(f"{url}: {exc}")) from None
    if not models:
        raise Missing(f"{url} serves no model")
    return models[0]
