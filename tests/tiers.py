"""Tests of the second tier, which only `make test-all` runs, with the reasons.

`make test` runs the fast tier, which checks every promise once. `make test-all` runs everything. The second tier has the
folders, files, tests and fixtures in this module, and parameters with the marker `full`.

    python -m tests.tiers [PATH …]     print the tier of each test, with the reason
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Final

import pytest

FILES: Final[Mapping[str, str]] = {
    path: reason
    for reason, paths in {
        "servers of others in environments that uv makes": (
            "tests/adoption/test_command.py",
            "tests/adoption/test_drift.py",
            "tests/adoption/test_packages.py",
            "tests/adoption/test_pinned.py",
            "tests/adoption/test_projects.py",
            "tests/adoption/test_url.py",
        ),
        "whole pipelines with real stages": (
            "tests/cli/test_large.py::test_validate_judges_the_three_tools_and_calls_the_others_through_them",
            "tests/cli/test_first_hour.py::test_a_run_names_the_worst_findings_and_a_partial_run_no_decision",
            "tests/cli/test_refresh.py",
            "tests/cli/test_stage_approval.py",
            "tests/pipeline/test_versions.py::test_other_bytes_get_a_local_version_which_staging_offers_and_production_refuses",
            "tests/pipeline/test_end_to_end.py::test_a_channel_is_built_again_from_the_commit_that_has_its_sources",
            "tests/pipeline/test_end_to_end.py::test_in_a_fresh_clone_a_channel_is_built_again_from_its_sources_byte_for_byte",
            "tests/pipeline/checks/test_evaluated.py",
            "tests/pipeline/test_suggestions.py",
            "tests/pipeline/test_build_sandbox.py",
            "tests/pipeline/test_channel_stages.py",
            "tests/cli/test_release.py",
            "tests/serve/test_factory.py",
            "tests/pipeline/test_end_to_end.py::test_a_server_that_breaks_the_protocol_does_not_get_to_staging_though_its_tests_mend_what_is_installed",
            "tests/pipeline/test_end_to_end.py::test_declared_tests_are_held_against_the_wheel_without_any_python_beside_them",
            "tests/pipeline/test_end_to_end.py::test_the_servers_own_tests_are_judged",
            "tests/pipeline/test_end_to_end.py::test_unusual_but_sound_documents_reach_staging",
            "tests/pipeline/test_end_to_end.py::test_what_is_installed_from_staging_are_the_bytes_that_were_checked",
            "tests/pipeline/test_function_stages.py",
            "tests/pipeline/test_evidence.py",
            "tests/pipeline/test_first_push.py",
            "tests/pipeline/test_gate_trial.py",
            "tests/pipeline/test_trials.py",
        ),
        "kills, races and limits of real processes": (
            "tests/cli/test_hiding.py",
            "tests/pipeline/test_containment.py",
            "tests/pipeline/test_dask.py",
            "tests/pipeline/test_kill.py",
            "tests/runtime/tasks/test_restart.py",
            "tests/pipeline/test_limits.py",
            "tests/pipeline/test_orphans.py",
            "tests/runtime/client/test_stdio.py",
            "tests/serve/test_gateway.py::test_calls_go_to_the_server_that_runs_now_however_many_came_before",
            "tests/runtime/remote/test_remote.py",
            "tests/runtime/remote/test_remote_clients.py",
            "tests/runtime/test_costs.py",
            "tests/runtime/test_example_servers.py",
            "tests/runtime/transports/test_bounds.py",
            "tests/runtime/transports/test_drain.py",
            "tests/runtime/transports/test_resuming.py",
            "tests/runtime/transports/test_several_processes.py",
            "tests/runtime/transports/test_workers.py",
        ),
        "wheels built and installed with uv": (
            "tests/cli/test_environments.py",
            "tests/cli/test_factory.py",
            "tests/cli/test_template.py",
            "tests/pipeline/test_distributions.py",
            "tests/pipeline/test_end_to_end.py::test_installers_hold_what_they_get_from_production_against_the_hash_in_the_state",
            "tests/pipeline/test_environments.py",
        ),
        "every template": (
            "tests/cli/test_new.py::test_a_template_serves_its_example_only_with_demo",
            "tests/codegen/templates/test_every_template.py",
            "tests/codegen/templates/test_scaffold.py",
            "tests/codegen/templates/test_sources.py",
        ),
        "mypy, tests and calls of many generated servers": (
            "tests/codegen/execution/test_address.py",
            "tests/codegen/execution/test_answers.py",
            "tests/codegen/large/test_profiles.py",
            "tests/codegen/emit/test_emit.py::test_generated_code_passes_type_checker_and_linter",
            "tests/codegen/execution/test_generated.py",
            "tests/codegen/micro",
        ),
        "every attack, limit and generated example; each kind has a test in the fast tier": (
            "tests/attacks",
            "tests/pipeline/evaluation/test_models.py",
            "tests/runtime/oauth_proxy/test_attacks.py",
            "tests/clients/test_edits.py::test_what_was_installed_and_taken_out_was_never_there",
            "tests/broken_servers/test_stdio.py::test_a_server_on_the_official_sdk_is_promotable_with_tolerated_deviations_only",
            "tests/broken_servers/test_stdio.py::test_silence_is_believed_the_second_time_and_the_time_for_the_rest_is_as_before",
            "tests/broken_servers/test_stdio.py::test_a_server_in_a_process_of_its_own_gets_the_report_that_it_gets_in_the_process_of_the_test",
            "tests/codegen/naming/test_properties.py",
            "tests/codegen/reading/test_bounds.py",
            "tests/pipeline/test_state.py::test_a_state_in_which_anything_was_changed_is_noticed_and_not_built_on",
            "tests/pipeline/test_state.py::test_a_state_of_any_moment_before_is_brought_up_to_date",
            "tests/runtime/schemas/test_bounds.py",
            "tests/runtime/wire/test_fuzz.py",
        ),
        "every edit of a person with each change of an API that it meets": (
            "tests/cli/test_rename.py::test_a_server_from_a_document_has_another_name_everywhere",
            "tests/codegen/update/test_update.py::test_a_changed_template_is_merged_with_what_the_person_made_of_it",
            "tests/codegen/update/test_update.py::test_no_edit_is_lost",
            "tests/codegen/update/test_update.py::test_the_lock_says_which_template_the_persons_files_have_until_an_update_took_all_of_it",
            "tests/codegen/update/test_curate.py",
        ),
        "commands of the docs and of CONTRIBUTING, carried out": (
            "tests/cli/test_address.py",
            "tests/cli/test_login.py::test_a_login_needs_a_registered_client_and_says_so",
            "tests/cli/test_login.py::test_a_person_logs_in_calls_and_logs_out",
            "tests/cli/test_named_commands.py",
            "tests/cli/test_owner_mistakes.py::test_each_command_says_where_and_what_to_do",
            "tests/cli/test_owner_mistakes.py::test_a_gateway_says_it_to_whoever_calls_and_serves_the_others",
            "tests/cli/test_reports.py",
            "tests/cli/test_tutorial.py",
            "tests/recipes",
            "tests/suite",
        ),
        "models and examinations": (
            "tests/benchmarks",
            "tests/cli/test_evaluate.py",
            "tests/cli/test_evaluate_model.py",
        ),
        "the dashboard with real runs, many readers and exports": (
            "tests/cli/test_live.py",
            "tests/dashboard/test_api.py",
            "tests/dashboard/test_cancel.py",
            "tests/dashboard/test_size.py",
            "tests/dashboard/test_killed_run.py",
            "tests/dashboard/test_log.py",
            "tests/dashboard/test_allowed_actions.py",
            "tests/dashboard/test_decision.py",
            "tests/dashboard/test_at_work.py",
            "tests/dashboard/test_tool_call_page.py::test_what_was_tried_is_kept_as_a_link_a_test_and_a_command",
            "tests/dashboard/test_tool_call_page.py::test_tools_without_an_api_document_are_tried_as_they_are",
            "tests/dashboard/test_tool_call_page.py::test_a_server_that_does_not_start_says_where_its_mistake_is",
            "tests/dashboard/test_tool_call_page.py::test_text_that_looks_like_a_number_stays_text_where_it_may_also_be_null",
        ),
        "identity providers with keys of every kind": ("tests/runtime/auth/test_principal.py",),
    }.items()
    for path in paths
}
"""Path of a folder or a file, or node id of a test, without parameters → why it is in the second tier."""

FIRST: Final = ("tests/cli/test_tutorial.py", "tests/pipeline/test_first_push.py", "tests/pipeline/test_trials.py")
"""Files with the slowest tests. They start first, so that no worker runs one of them alone at the end."""

FIXTURES: Final[Mapping[str, str]] = {
    "start_pipeline_process": "drives the pipeline in a process that is ended or killed"
}
"""Name of a fixture → why tests that use it are in the second tier."""

MATRIX: Final = ("tests/runtime/interaction", "tests/runtime/wire", "tests/runtime/client", "tests/runtime/transports")
"""Folders with tests of every revision; over pipes and sockets, the fast tier runs the oldest and the newest."""


def full(reason: str) -> pytest.MarkDecorator:
    """Return the marker of the second tier, for a parameter."""
    return pytest.mark.full(reason)


def is_left_out(path: str) -> bool:
    """Return True if the fast tier need not import a path, which is relative to the repository."""
    return any(place in FILES for place in _places(path))


@cache
def _places(path: str) -> tuple[str, ...]:
    """Return a path and the folders above it."""
    return (path, *(folder.as_posix() for folder in PurePosixPath(path).parents))


def assign_tier(item: pytest.Item) -> str:
    """Return the reason why a test is in the second tier, and mark it `full`; "" if it is fast."""
    marker = item.get_closest_marker("full")
    reason = str(marker.args[0]) if marker else _reason(item)
    if reason and marker is None:
        item.add_marker(full(reason))
    return reason


def _reason(item: pytest.Item) -> str:
    node = item.nodeid.partition("[")[0]
    for place in (node, *_places(node.partition("::")[0])):
        if place in FILES:
            return FILES[place]
    for name in getattr(item, "fixturenames", ()):
        if name in FIXTURES:
            return FIXTURES[name]
    return _middle_revision(item) if node.startswith(MATRIX) else ""


def _middle_revision(item: pytest.Item) -> str:
    from mcpfactory_runtime.revisions import REVISIONS

    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    transport = given.get("transport", given.get("connect", "memory"))
    oldest, *_, newest = REVISIONS
    if transport == "memory" or "revision" not in given or str(given["revision"]) in (oldest, newest):
        return ""
    return "a revision that the fast tier tries in memory"


class _Printer:
    """Prints the tier of each collected test."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            reason = assign_tier(item)
            print(f"full  {item.nodeid}: {reason}" if reason else f"fast  {item.nodeid}")


if __name__ == "__main__":
    sys.exit(pytest.main(["--collect-only", "-qqq", *sys.argv[1:]], [_Printer()]))
