"""Which names carry secrets: ``ps`` shows command lines and profiles get shared, so neither may hold one."""

from __future__ import annotations

_ENDINGS = ("TOKEN", "API_KEY", "APIKEY", "PASSWORD", "PASSWD", "ACCESS_KEY", "CREDENTIALS")
SECRET_FLAGS = frozenset({"api-key", "hf-token"})
ADVICE = "set {name} in the environment or in env_file:"
MASK = "•••"


def is_secret_env(name: str) -> bool:
    """Whether an environment variable of this name looks like it holds a secret."""
    upper = name.upper()
    return upper.endswith(_ENDINGS) or "SECRET" in upper


def masked_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """``argv`` with the values of secret flags hidden, both as ``--flag value`` and as ``--flag=value``."""
    shown: list[str] = []
    hiding = False
    for token in argv:
        name, equals, _ = token.partition("=")
        secret = token.startswith("--") and name[2:].replace("_", "-") in SECRET_FLAGS
        if hiding and not token.startswith("--"):
            shown.append(MASK)
            continue
        hiding = secret and not equals
        shown.append(f"{name}={MASK}" if secret and equals else token)
    return tuple(shown)
