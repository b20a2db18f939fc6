"""Servers that were written with FastMCP or the official Python SDK become servers of the runtime.

`codemod.migrate_source` is pure: source text in, source text and a report out; `forms` are its tables. `compare` starts both versions and says
what callers would notice; `host` is the program by which a file is served for that, in the environment of the server.
"""

from mcpfactory_pipeline.migration.codemod import Migration, MigrationStep, migrate_source
from mcpfactory_pipeline.migration.compare import Likeness, compare_versions
from mcpfactory_pipeline.migration.requests import CallPermission

__all__ = ["CallPermission", "Likeness", "Migration", "MigrationStep", "compare_versions", "migrate_source"]
