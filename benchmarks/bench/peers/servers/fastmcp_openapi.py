"""FastMCP server for the API document in the first argument, as in the documentation of FastMCP."""

import json
import sys
from pathlib import Path

import httpx2
from fastmcp import FastMCP

document = json.loads(Path(sys.argv[1]).read_bytes())
client = httpx2.AsyncClient(base_url="http://127.0.0.1:9")
FastMCP.from_openapi(document, client=client).run(show_banner=False, log_level="ERROR")
