"""Eighteen ways in that were once shown to be open, and what tries each of them now."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Demonstration:
    """What could be done; the attempts (their names begin so) and the tests (pytest's ids) that try it."""

    what: str
    attempts: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


_SCAFFOLD: Final = "tests/codegen/templates/test_scaffold.py"
_INSTALL: Final = "tests/cli/test_install.py"

DEMONSTRATIONS: Final = (
    Demonstration(
        "answers to questions that were never put, or put once, approve and pay",
        ("questions: ", "sealed states: "),
    ),
    Demonstration(
        "a change of address takes the credentials along",
        ("moved credentials: ",),
        ("tests/codegen/update/test_origins.py",),
    ),
    Demonstration("a server gets the variables of all others", ("surroundings: ",)),
    Demonstration(
        "a template runs something, plants a repository, or hangs `new`",
        ("templates: ",),
        (
            f"{_SCAFFOLD}::test_a_template_that_wants_to_run_something_is_refused",
            f"{_SCAFFOLD}::test_a_template_that_is_no_folder_of_small_plain_files_is_refused_soon",
            f"{_SCAFFOLD}::test_no_part_of_what_a_template_makes_is_gits_own",
            f"{_SCAFFOLD}::test_the_repository_of_a_template_runs_nothing",
        ),
    ),
    Demonstration("one client ends everybody's sessions", ("connections: 60 sessions",)),
    Demonstration("a hostile server leads our OAuth client, and its secret, elsewhere", ("logins: ",)),
    Demonstration("text of strangers acts on terminals, CI and models", ("texts: ",), ("tests/serve/test_texts.py",)),
    Demonstration(
        "a server without authorization serves everybody, or pages of a browser",
        (
            "connections: every address",
            "connections: a form",
            "connections: a page",
            "connections: a type",
            "web pages: ",
        ),
    ),
    Demonstration(
        "processes of a server outlive `validate`, the gateway, a stage",
        ("strangers: one whose children",),
        ("tests/pipeline/test_orphans.py",),
    ),
    Demonstration(
        "`install` writes secrets for others to read, and over entries of others",
        tests=(
            f"{_INSTALL}::test_what_looks_like_a_secret_is_written_where_somebody_says_so",
            f"{_INSTALL}::test_an_entry_of_another_server_is_not_replaced_without_force",
            f"{_INSTALL}::test_a_password_in_an_address_is_a_secret",
            "tests/clients/test_every_client.py",
        ),
    ),
    Demonstration(
        "`inspect` starts the code of a stranger's server",
        ("strangers: a server without a report", "strangers: one that is started"),
    ),
    Demonstration("`serve` tells an agent what any file or address is", ("documents of agents: ",)),
    Demonstration(
        "packages hold key material, and what git ignores",
        ("packages: ",),
        ("tests/pipeline/test_secret_scan.py", "tests/publish/test_secret_scan.py"),
    ),
    Demonstration(
        "a folder's name is an option or a command of the CI",
        ("names: ", "settings and results of jobs: "),
        (
            "tests/pipeline/test_ci.py::test_every_action_is_pinned_to_a_full_commit",
            "tests/releases/test_check.py::test_every_action_is_pinned_and_no_script_holds_a_value_from_outside",
        ),
    ),
    Demonstration(
        "half-sent requests stay, and hold up the end; bytes behind a body become an answer",
        (
            *("connections: half", "connections: nothing", "connections: a second request", "connections: rubbish"),
            *("messages: ",),
        ),
    ),
    Demonstration(
        "the configuration of a copied repository, or of one inside it, runs programs in our commands",
        tests=(
            "tests/pipeline/test_base_git.py",
            "tests/pipeline/test_origin.py::test_the_configuration_of_the_repository_around_is_not_asked_whether_another_can_be_read",
        ),
    ),
    Demonstration(
        "a CI job writes over files of other candidates",
        tests=("tests/pipeline/test_admission.py::test_a_stage_hands_over_its_own_log_and_reports_and_no_other_file",),
    ),
    Demonstration(
        "code of a stage reaches sockets, terminals and shared memory of other programs",
        tests=(
            "tests/pipeline/test_isolation.py::test_code_reaches_its_own_folder_and_neither_files_nor_processes_outside",
            "tests/pipeline/test_isolation.py::test_unix_sockets_are_refused_and_so_is_every_way_around",
        ),
    ),
)


def run_tests(ids: tuple[str, ...]) -> tuple[int, str]:
    """Run tests; how many there were, and what failed ("" for nothing)."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *ids]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode or passed is None:
        return 0, done.stdout[-2000:] + done.stderr[-500:]
    return int(passed[1]), ""
