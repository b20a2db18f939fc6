"""The bookshop service as upstream API for `mcpfactory evaluate` and the stage `validate`.

Prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SERVICE = Path(__file__).with_name("service.py")


def main() -> None:
    with subprocess.Popen([sys.executable, SERVICE, "--port", "0"], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url = service.stdout.readline().strip()
        environment = {"BOOKSHOP_BASE_URL": url, "BOOKSHOP_API_KEY": "bookworm"}
        print(json.dumps({"environment": environment}), flush=True)
        sys.stdin.read()
        service.terminate()


if __name__ == "__main__":
    main()
