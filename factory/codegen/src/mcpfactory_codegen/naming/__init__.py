"""Every name that generated code needs, chosen in one pass over the whole API.

Rules, in this order:
1. Total and unique: every operation, argument, module and variable has a name, and no two share one.
2. A name depends on its own operation (operationId, method, path) and on those that would have had the same name;
   never on the order of the document, and never on a counter. Reordering, adding or renaming elsewhere changes nothing.
3. Operations that would share a name all get longer ones, from words of their own path, their method, and in the end a
   digest of method and path. Nobody keeps the plain name by having come first.
4. `pinned` names win: a server that was published keeps the names that its callers know.
"""

from __future__ import annotations

from mcpfactory_codegen.naming._names import (
    ENVIRONMENT_PARTS,
    Names,
    OperationNames,
    may_be_argument,
    may_be_tool,
    name_api,
    variable_prefix,
)

__all__ = [
    "ENVIRONMENT_PARTS",
    "Names",
    "OperationNames",
    "may_be_argument",
    "may_be_tool",
    "name_api",
    "variable_prefix",
]
