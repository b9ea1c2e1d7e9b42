"""A profile and the name of a variant to what that variant runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparktui.profile.model import Args, Docker, JsonObject, Profile, Variant
from sparktui.profile.problems import profile_error
from sparktui.yamlfile.problems import did_you_mean

_BUILT_IN_ON = Variant("on")
_BUILT_IN_OFF = Variant("off", speculative=False)
_BUILT_IN_BASE = Variant("base")


@dataclass(frozen=True, slots=True)
class ResolvedVariant:
    """One arm, everything merged. ``speculative`` None: speculation is off."""

    name: str
    model: str
    args: Args
    env: dict[str, str]
    speculative: JsonObject | None
    vllm_bin: str | None = None
    vllm: str | None = None
    docker: Docker | None = None

    @property
    def speculating(self) -> bool:
        return self.speculative is not None


def variant_names(profile: Profile) -> tuple[str, ...]:
    """Names that ``resolve`` takes: off and on (or base, without speculation), then the profile's own."""
    built_in = ("off", "on") if profile.speculative else ("base",)
    return (*built_in, *profile.variants)


def default_variant(profile: Profile) -> str:
    """The profile as its file says: with speculation where it has some."""
    return "on" if profile.speculative else "base"


def resolve(profile: Profile, name: str) -> ResolvedVariant:
    """Merge a variant into its profile. Raises ProfileError for a name that the profile hasn't."""
    variant = _variant(profile, name)
    return ResolvedVariant(
        name=name,
        model=variant.model or profile.model,
        args={flag: value for flag, value in merge(profile.args, variant.args).items() if value is not None},
        env={key: value for key, value in merge(profile.env, variant.env).items() if value is not None},
        speculative=_speculative(profile, variant),
        vllm_bin=variant.vllm_bin or profile.vllm_bin,
        vllm=variant.vllm or profile.vllm,
        docker=_docker(profile, variant),
    )


def _variant(profile: Profile, name: str) -> Variant:
    names = variant_names(profile)
    if name not in names:
        hint = did_you_mean(name, names)
        message = f"{profile.name} has no variant {name!r}{hint} (it has {', '.join(names)})"
        raise profile_error(message, profile.path, profile.lines.get("variants", 0))
    built_in = {v.name: v for v in (_BUILT_IN_ON, _BUILT_IN_OFF, _BUILT_IN_BASE)}
    return profile.variants.get(name) or built_in[name]


def _speculative(profile: Profile, variant: Variant) -> JsonObject | None:
    if variant.speculative is False:
        return None
    return merge(profile.speculative or {}, variant.speculative or {}) or None


def _docker(profile: Profile, variant: Variant) -> Docker | None:
    words = {**profile.docker, **variant.docker}
    return Docker(**words) if "image" in words else None


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``change`` over it, mappings merged in depth; a changed key keeps its place."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
