"""How a question is read: phrases, parted verbs, intent, and forms of words."""

from __future__ import annotations

from mcpfactory_runtime.server.generated.search_words import parse_search_question, stem
from tests.subtest_table import parametrize_subtests


def options(question: str) -> set[str]:
    return {option for term in parse_search_question(question).terms for option in term.options}


@parametrize_subtests(
    "question, meant, not_meant",
    [
        ("get rid of a book", "delete", "rid"),
        ("take songs out of a playlist", "remove", "out"),
        ("turn the lights off", "disable", "off"),
        ("turn the lights on", "enable", "on"),
        ("give a buyer their money back", "refund", "back"),
        ("bring a file back", "restore", "back"),
        ("hand a task over", "assign", "over"),
        ("tell me when a build fails", "webhook", "when"),
        ("have my server called when somebody pushes", "webhook", "called"),
        ("list my books", "me", "my"),
        ("sign in", "login", "sign"),
    ],
)
def test_words_that_mean_something_else_together_are_read_together(question: str, meant: str, not_meant: str) -> None:
    assert stem(meant) in options(question)
    assert stem(not_meant) not in options(question)


@parametrize_subtests("question, method", [
        ("which books are there", "GET"), ("list books", "GET"), ("books of a shelf", "GET"), ("how many books", "GET"),
        ("add a book", "POST"), ("how can I add a book", "POST"), ("I want to add a book", "POST"), ("please add a book", "POST"),
        ("change a book", "PATCH"), ("give a book another name", "PUT"),
        ("delete a book", "DELETE"), ("get rid of a book", "DELETE"), ("throw a book away", "DELETE"),
        ("take back a star", "DELETE"), ("how new is this", "GET"), ("report a bug", "POST"),
        ("book", ""), ("a wondrous tale", ""),
    ])  # fmt: skip
def test_the_verb_of_a_question_says_what_it_wants(question: str, method: str) -> None:
    methods = parse_search_question(question).methods
    assert (method in methods) if method else not methods or methods & {"POST", "GET"}


@parametrize_subtests("question, method", [
        ("a book was stolen", ""), ("the cover keeps changing", ""), ("I lost a book", ""), ("somebody is reading my book", ""),
        ("a book was stolen, delete it", "DELETE"), ("a book was stolen. Delete it.\n", "DELETE"), ("the shelf is full. Which books are old?", "GET"),
        ("a book was stolen, the shelf is empty", ""),
        ("the books that are on a shelf", "GET"), ("I want to delete what is on a shelf", "DELETE"),
    ])  # fmt: skip
def test_a_statement_suggests_no_method_and_what_follows_it_does(question: str, method: str) -> None:
    methods = parse_search_question(question).methods
    assert (method in methods) if method else not methods
