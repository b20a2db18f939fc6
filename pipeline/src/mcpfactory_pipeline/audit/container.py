"""What a container is started with, of the words behind `docker run`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["ContainerRun", "Mount", "read_run"]

_SWITCHES: Final = frozenset(
    {
        "--rm", "--init", "--privileged", "--read-only", "-i", "-t", "-d", "-P", "--interactive", "--tty", "--detach", "--publish-all",
        "--no-healthcheck", "--sig-proxy", "--oom-kill-disable", "--disable-content-trust", "-q", "--quiet", "--help", "--replace",
    }
)  # fmt: skip
_LETTERS: Final = re.compile(r"-[itdPq]{2,}")
_SHORT_VALUE: Final = re.compile(r"-([evpuwlmhca])(.+)", re.DOTALL)
_LONG: Final[Mapping[str, str]] = {
    "-e": "--env", "-v": "--volume", "-p": "--publish", "-u": "--user", "-w": "--workdir", "--net": "--network",
    "-l": "--label", "-m": "--memory", "-h": "--hostname", "-c": "--cpu-shares", "-a": "--attach",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of this machine that a container sees."""

    source: str
    writable: bool


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """An image and what it is started with: `options` maps each long option to its values, [] for a switch."""

    image: str
    version: str
    pin: Literal["digest", "tag", "floating"]
    options: Mapping[str, tuple[str, ...]]
    mounts: tuple[Mount, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def read_run(words: Sequence[str]) -> ContainerRun | None:
    """Return what a container engine is told to start; None where it is told something else."""
    rest = list(words)
    while rest and rest[0].startswith("-"):  # options of the engine itself
        rest = rest[1:] if "=" in rest[0] or rest[0] in {"-D", "--debug", "--tls"} else rest[2:]
    if rest[:2] in (["container", "run"], ["container", "create"]):
        rest = rest[1:]
    if not rest or rest[0] != "run":
        return None
    options, left = _options(rest[1:])
    if not left:
        return None
    pairs = [one.partition("=") for one in options.get("--env", ())]
    name, version, pin = _image(left[0])
    return ContainerRun(
        name,
        version,
        pin,
        {key: tuple(values) for key, values in options.items()},
        tuple(_mounts(options)),
        {key: value for key, equals, value in pairs if equals},
        tuple(key for key, equals, _ in pairs if not equals),
        tuple(left[1:]),
    )


def _options(words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, equals, value = word.partition("=")
        if word == "--":
            at += 1
            break
        if word in _SWITCHES or _LETTERS.fullmatch(word):
            found.setdefault(_LONG.get(word, word), [])
        elif equals and name.startswith("--"):
            if value.lower() not in {"false", "0"}:
                found.setdefault(_LONG.get(name, name), []).append(value)
        elif (short := _SHORT_VALUE.fullmatch(word)) and not word.startswith("--"):
            found.setdefault(_LONG[f"-{short[1]}"], []).append(short[2])
        elif at + 1 < len(words):
            at += 1
            found.setdefault(_LONG.get(word, word), []).append(words[at])
        at += 1
    return found, list(words[at:])


def _mounts(options: Mapping[str, Sequence[str]]) -> list[Mount]:
    found = []
    for text in options.get("--volume", ()):
        windows = re.match(r"[A-Za-z]:[\\/]", text)
        drive, rest = (text[:2], text[2:]) if windows else ("", text)
        source, *others = rest.split(":")
        if re.match(r"[./~\\$%]", source) or drive:  # else it is the name of a volume
            found.append(Mount(drive + source, not any("ro" in one.split(",") for one in others[1:])))
    for text in options.get("--mount", ()):
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        source = parts.get("src") or parts.get("source") or ""
        if parts.get("type", "volume") == "bind" and source:
            closed = {"readonly", "ro"} & {key for key, value in parts.items() if value.lower() not in {"false", "0"}}
            found.append(Mount(source, not closed))
    return found


def _image(word: str) -> tuple[str, str, Literal["digest", "tag", "floating"]]:
    """Return name, version and how sure it is of an image: a port of a registry is no tag."""
    name, at, digest = word.partition("@")
    if at:
        return name, digest, "digest"
    last = name.rpartition("/")[2]
    if ":" not in last:
        return name, "", "floating"
    tag = last.partition(":")[2]
    return name.removesuffix(f":{tag}"), tag, "floating" if tag in {"latest", "edge", "main", "nightly"} else "tag"
