"""Start a program in a container, with the environment variables of this process.

python -I -S container_client.py [NAME=VALUE]… -- CLIENT [OPTION]… -- IMAGE PROGRAM [ARGUMENT]…

NAME=VALUE are variables of the client, not of the program. The command line cannot contain the server's variables,
because they are unknown before the start. This file is run by path, like `landlock.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

_FAILED: Final = 126  # exit code of a shell that cannot start a program
_OWN: Final = ("PATH",)  # variables that the image itself sets


def container_client_command(arguments: list[str], environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the client's command and environment.

    The client gets the values of variables through its environment, because every user of the machine can read
    arguments.
    """
    first = arguments.index("--")
    second = arguments.index("--", first + 1)
    own = dict(word.split("=", 1) for word in arguments[:first])
    given = {name: value for name, value in environ.items() if name not in _OWN}
    named = [word for name, value in given.items() for word in ("--env", f"{name}={value}" if name in own else name)]
    return [*arguments[first + 1 : second], *named, *arguments[second + 1 :]], {**environ, **own}


def main() -> None:
    """Replace this process with the container client."""
    command, environ = container_client_command(sys.argv[1:], os.environ)
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - replaces this process by the container client
    except OSError as error:
        sys.stderr.write(f"error: {command[0]} cannot be started: {error}\n")
        sys.exit(_FAILED)


if __name__ == "__main__":
    main()
