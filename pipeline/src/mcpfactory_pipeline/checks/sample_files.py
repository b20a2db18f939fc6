"""Sample files: a temporary folder with small files, for arguments that are paths."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

# A PDF with one empty page. Readers rebuild the table of positions, which is left out.
_PDF: Final = (
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R/Size 4>>\n%%EOF\n"
)
HTML: Final = "<!DOCTYPE html><html lang=en><title>Sample</title><h1>Sample</h1><p>Sample text.</p></html>\n"
# Suffix → contents. A file with another suffix is empty, which many formats permit.
_CONTENTS: Final = {
    **dict.fromkeys(("txt", "md"), "# Sample\n\nSample text.\n"),
    **dict.fromkeys(("html", "htm"), HTML),
    "csv": "name,count\nsample,1\n",
    "json": json.dumps({"name": "sample", "count": 1}),
    "pdf": _PDF,
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\n',
    "xml": "<sample>Sample text.</sample>\n",
    "yaml": "name: sample\n",
}


class SampleFiles:
    """The temporary folder. Files are created when they are needed; `remove` the folder at the end."""

    def __init__(self) -> None:
        self._created = tempfile.TemporaryDirectory(prefix="mcpfactory-samples-", ignore_cleanup_errors=True)
        self.root = Path(self._created.name)

    def remove(self) -> None:
        """Remove the folder."""
        self._created.cleanup()

    @property
    def folder(self) -> str:
        """Return the path of the folder, which has at least one text file."""
        self.file("txt")
        return str(self.root)

    def file(self, suffix: str) -> str:
        """Return the path of a file with this suffix, which is written without a dot."""
        path = self.root / f"sample.{suffix}"
        if not path.exists():
            path.write_text(_CONTENTS.get(suffix, ""), encoding="utf-8")
        return str(path)
