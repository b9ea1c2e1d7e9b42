"""What load and probe share: a server by its URL, its model, the files that are written."""

from __future__ import annotations

import argparse
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
    parts = urlsplit(text if "//" in text else f"http://{text}")
    try:
        parts.port  # noqa: B018  raises on what is no number
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} has a port that is no number from 0 to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL like http://127.0.0.1:8000")
    if parts.username or parts.password:
        raise argparse.ArgumentTypeError("a URL must hold no secret: set VLLM_API_KEY in the environment")
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


def check_writable(target: str | None) -> None:
    """Nothing is left behind, and nothing that is there is touched. Raises Usage."""
    if target is None or target == STDOUT:
        return
    path = Path(target)
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as exc:
        raise _unwritable(target, exc) from None


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
        raise _unwritable(target, exc) from None


def _unwritable(target: str, exc: OSError) -> Usage:
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
