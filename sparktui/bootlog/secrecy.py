"""Secrets in log lines: vLLM up to 0.27 prints its arguments with the keys in clear, `set -x` everything."""

from __future__ import annotations

import re

MASK = "•••"

_VALUE = r"""(?:\[[^\]]*\]|'[^']*'|"[^"]*"|[^\s,})]+)"""
_ARGUMENT = re.compile(rf"""(["']?\b(?:api_key|hf_token)["']?[=:] ?)(?!None\b){_VALUE}""")
_SECRETS = (
    re.compile(
        r"""(--?(?:api-k\w*|api_key|hf[-_]token|ssl-keyfile-password)['"]?(?:=|,? +))"""
        r"""(?:\\?'[^']*'|\\?"[^"]*"|[^\s'",\]]+)(?: +(?!-)[^\s'"]+)*"""
    ),
    re.compile(
        r"""(\b\w{0,40}(?:API_KEY|TOKEN|SECRET\w{0,20}|PASSWORD|PASSWD|ACCESS_KEY(?:_ID)?)"""
        r"""\\?["']?(?:=|: ?))(?!None\b)(?:\\?'[^']*'|\\?"[^"]*"|[^\s,})]+)"""
    ),
    re.compile(r"((?:[Bb]earer|Authorization: Basic) )[\w.~+/=-]{8,}"),
    re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,80}:)[^\s/@]{1,200}(?=@)"),
    re.compile(r"()\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,})"),
)


def masked(text: str) -> str:
    """``text`` with the values of keys and tokens hidden."""
    if not _suspicious(text):
        return text
    text = _ARGUMENT.sub(rf"\g<1>'{MASK}'", text)  # quoted: the line stays a printed value of Python
    for secret in _SECRETS:
        text = secret.sub(rf"\g<1>{MASK}", text)
    return text


def _suspicious(text: str) -> bool:
    """The cheap question before the patterns; written out, because it is asked of every line."""
    return (
        "api_key" in text
        or "api-key" in text
        or "hf_" in text
        or "hf-" in text
        or "_KEY" in text
        or "TOKEN" in text
        or "SECRET" in text
        or "PASSW" in text
        or "sk-" in text
        or "earer " in text
        or "Basic " in text
        or "ssl-key" in text
        or "@" in text
    )
