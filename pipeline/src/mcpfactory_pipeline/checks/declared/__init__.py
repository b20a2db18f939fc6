"""Declared tests, written in YAML next to a server: tool, arguments, and expected result.

`read_tests` reads them, `check_result` checks one answer, `run_tests` calls the server, `RequestRecorder` makes
recordings.
"""

from mcpfactory_pipeline.checks.declared.definition import DeclaredTest, check_result, read_tests
from mcpfactory_pipeline.checks.declared.recorder import RequestRecorder, recording_path
from mcpfactory_pipeline.checks.declared.runner import DeclaredOutcome, ServerSetup, run_tests

__all__ = [
    "DeclaredOutcome",
    "DeclaredTest",
    "RequestRecorder",
    "ServerSetup",
    "check_result",
    "read_tests",
    "recording_path",
    "run_tests",
]
