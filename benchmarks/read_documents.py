"""Reads every document of `benchmarks/apis` into the intermediate form and prints what came of it.

    python -m benchmarks.read_documents [--only github,stripe] [--no-metaschema]

A row per document: operations in the document (by the list), read, skipped, problems (errors/warnings), seconds to load and
to read, peak memory, schemas, and faults: operations that are neither read nor skipped, schemas that are not valid JSON
Schema 2020-12, references that lead nowhere. Each document is read in a process of its own. Exit 1 on any fault,
3 when a document cannot be had.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import jsonschema

from benchmarks.apis import DocumentError, path, select
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load


def read_one(file: str, metaschema: bool) -> dict[str, Any]:
    """Load and read one document in this process."""
    start = time.perf_counter()
    document = load(file)
    loaded = time.perf_counter()
    api = read_api(document)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    levels = Counter(problem.level for problem in api.problems)
    row: dict[str, Any] = {
        "read": len(api.operations),
        "skipped": len(api.skipped),
        "errors": levels["error"],
        "warnings": levels["warning"],
        "load": round(loaded - start, 2),
        "seconds": round(done - loaded, 2),
        "peak_mb": peak,
        "parts": len(document.parts),
        "schemas": len(api.schemas),
        "codes": dict(Counter(problem.code for problem in api.problems)),
        "faults": schema_faults(api, metaschema),
    }
    row["unreadable"] = row["codes"].get("operation-unreadable", 0)
    return row


def schema_faults(api: Any, metaschema: bool) -> list[str]:
    """What is wrong with the schemas of an Api: references that lead nowhere, and what the metaschema says."""
    faults: list[str] = []
    schemas = [*((f"$defs/{name}", schema) for name, schema in api.schemas.items()), *operation_schemas(api)]
    validator = None
    if metaschema:
        validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    seen: set[int] = set()
    for name, schema in schemas:
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        stack = [schema]
        while stack:
            node = stack.pop()
            if isinstance(node, list):
                stack.extend(node)
            elif isinstance(node, dict):
                reference = node.get("$ref")
                if isinstance(reference, str) and reference.removeprefix("#/$defs/") not in api.schemas:
                    faults.append(f"{name}: {reference} leads nowhere")
                stack.extend(
                    value for key, value in node.items() if key not in {"default", "const", "enum", "examples"}
                )
        if validator is not None:
            faults.extend(f"{name}: {error.message[:200]}" for error in validator.iter_errors(schema))
    return faults


def operation_schemas(api: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for operation in api.operations:
        found.extend((f"{operation.key} {one.name}", one.schema) for one in operation.parameters)
        if operation.body is not None:
            found.append((f"{operation.key} body", operation.body.schema))
        found.extend(
            (f"{operation.key} {one.status}", one.schema) for one in operation.responses if one.schema is not None
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--no-metaschema", action="store_true", help="faster: check references only")
    parser.add_argument("--codes", action="store_true", help="print the problem codes too")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(read_one(options.one, not options.no_metaschema)))
        return 0
    bad = total = read = 0
    try:
        documents = [(one, path(one)) for one in select(options.only)]
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(
        f"{'document':22} {'spec':6} {'ops':>6} {'read':>6} {'skip':>5} {'err':>4} {'warn':>5} {'load s':>7} {'read s':>7} {'MB':>5} {'schemas':>7}  faults"
    )
    for document, file in documents:
        name = f"{document.name:22} {document.openapi:6}"
        command = [sys.executable, "-m", "benchmarks.read_documents", "--one", str(file)]
        command += ["--no-metaschema"] if options.no_metaschema else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            bad += 1
            print(f"{name} FAILED {done.stderr.strip()[-3000:]}")
            continue
        one = json.loads(done.stdout)
        operations = document.operations
        faults = one["faults"]
        if one["read"] + one["skipped"] != operations:
            faults.insert(0, f"{operations - one['read'] - one['skipped']} operations neither read nor skipped")
        if one["unreadable"]:
            faults.insert(0, f"{one['unreadable']} operations unreadable")
        bad += bool(faults)
        total += operations
        read += one["read"]
        print(
            f"{name} {operations:6} {one['read']:6} {one['skipped']:5} {one['errors']:4} {one['warnings']:5} "
            f"{one['load']:7} {one['seconds']:7} {one['peak_mb']:5} {one['schemas']:7}  {len(faults)} {'; '.join(faults[:3])[:400]}",
            flush=True,
        )
        if options.codes:
            print("    ", one["codes"])
    print(f"{read} of {total} operations read; {bad} documents with a fault")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
