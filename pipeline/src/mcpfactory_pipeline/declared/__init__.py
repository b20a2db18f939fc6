"""Tests that people declare in YAML beside a server: tool, arguments, and what must come back.

`read_tests` reads them, `judge_result` decides about one answer, `run_tests` calls the server, `Recorder` makes recordings.
"""

from mcpfactory_pipeline.declared.case import Declared, read_tests
from mcpfactory_pipeline.declared.expect import judge_result
from mcpfactory_pipeline.declared.recorder import Recorder, recording_of
from mcpfactory_pipeline.declared.session import Bench, Outcome, run_tests

__all__ = ["Bench", "Declared", "Outcome", "Recorder", "judge_result", "read_tests", "recording_of", "run_tests"]
