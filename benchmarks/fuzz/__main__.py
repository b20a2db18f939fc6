"""Searches one target with atheris: `python -m benchmarks.fuzz TARGET [libFuzzer's options] CORPUS`.

Runs in an environment that has atheris; `python -m benchmarks.exam fuzz` makes it.
"""

from __future__ import annotations

import importlib
import sys

import atheris  # type: ignore[import-untyped]  # it lives in an environment of its own

from benchmarks.fuzz import TARGETS


def main(target: str, arguments: list[str]) -> None:
    """Run until libFuzzer has done what its options say; it ends the process itself."""
    if target not in TARGETS:
        sys.exit(f"no target {target}; there are {', '.join(TARGETS)}")
    with atheris.instrument_imports(include=["mcpfactory_runtime", "mcpfactory_codegen", "mcpfactory_pipeline"]):
        module = importlib.import_module(f"benchmarks.fuzz.{target}")
    options = {}
    if (mutate := getattr(module, "mutate", None)) is not None:

        def mutated(data: bytes, size: int, seed: int) -> bytes:
            found: bytes = mutate(data, size, seed, module.WORDS, atheris.Mutate)
            return found

        options["custom_mutator"] = mutated
    atheris.Setup([sys.argv[0], *arguments], module.one, **options)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
