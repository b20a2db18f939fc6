"""Start script that runs a server's package like `python -m`, and explains a fatal error.

python -P start.py PACKAGE FOLDER [ARGUMENT]…

This file is run by path in the server's environment, where mcpfactory may be missing. The file imports few modules of
the standard library, because imports delay every start.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Final

START_FAILED: Final = 6  # the CLI's exit code for the same failure (docs/reference/exit-codes.md)


def main() -> None:
    """Run the package. An uncaught error ends the process with `START_FAILED`."""
    script, package, folder, *arguments = sys.argv
    sys.argv[1:] = arguments
    try:
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    except Exception as error:  # noqa: BLE001 - any error of the server's code is explained
        beside = os.path.join(os.path.dirname(os.path.abspath(script)), "diagnosis.py")  # noqa: PTH100,PTH118,PTH120 - no pathlib yet
        sys.stderr.write(runpy.run_path(beside)["explain_error"](error, package, folder))
        sys.exit(START_FAILED)


if __name__ == "__main__":
    main()
