"""`python -m mcpfactory_pipeline.build.distributions INTO FOLDER…`: the wheel and the source distribution of each folder.

`make dist` calls it. Other versions of the same distributions in the folder INTO are taken away, so that
`--find-links` finds these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.build.distributions.packages import write_packages


def main(arguments: list[str]) -> int:
    """Write the packages, and print each with the hash of its bytes."""
    if len(arguments) < 2:
        print((__doc__ or "").splitlines()[0], file=sys.stderr)  # noqa: T201 - a program for the Makefile
        return 2
    into, *folders = map(Path, arguments)
    try:
        for folder in folders:
            for name, content in write_packages(folder.resolve(), into).items():
                print(f"{content.removeprefix('sha256:')}  {into / name}", flush=True)  # noqa: T201 - a program for the Makefile
    except PipelineError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)  # noqa: T201 - a program for the Makefile
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
