"""How a question is read: phrases, parted verbs, intent, and forms of words."""

from __future__ import annotations

import pytest

from mcpfactory_runtime.server.generated.search_question import associations, read_question, synonyms
from mcpfactory_runtime.server.generated.search_thesaurus import PHRASES
from mcpfactory_runtime.server.generated.search_words import identifier_words, stem, text_words
from tests.rows import rows


def options(question: str) -> set[str]:
    return {option for term in read_question(question).terms for option in term.options}


@rows(
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


@rows("question, method", [
        ("which books are there", "GET"), ("list books", "GET"), ("books of a shelf", "GET"), ("how many books", "GET"),
        ("add a book", "POST"), ("how can I add a book", "POST"), ("I want to add a book", "POST"), ("please add a book", "POST"),
        ("change a book", "PATCH"), ("give a book another name", "PUT"),
        ("delete a book", "DELETE"), ("get rid of a book", "DELETE"), ("throw a book away", "DELETE"),
        ("take back a star", "DELETE"), ("how new is this", "GET"), ("report a bug", "POST"),
        ("book", ""), ("a wondrous tale", ""),
    ])  # fmt: skip
def test_the_verb_of_a_question_says_what_it_wants(question: str, method: str) -> None:
    methods = read_question(question).methods
    assert (method in methods) if method else not methods or methods & {"POST", "GET"}


@rows("question, method", [
        ("a book was stolen", ""), ("the cover keeps changing", ""), ("I lost a book", ""), ("somebody is reading my book", ""),
        ("a book was stolen, delete it", "DELETE"), ("a book was stolen. Delete it.\n", "DELETE"), ("the shelf is full. Which books are old?", "GET"),
        ("a book was stolen, the shelf is empty", ""),
        ("the books that are on a shelf", "GET"), ("I want to delete what is on a shelf", "DELETE"),
    ])  # fmt: skip
def test_a_statement_suggests_no_method_and_what_follows_it_does(question: str, method: str) -> None:
    methods = read_question(question).methods
    assert (method in methods) if method else not methods


@pytest.mark.parametrize(
    ("question", "many"),
    [("list the books", True), ("all of it", True), ("read a book", False), ("the status of a bus", False)],
)
def test_a_question_asks_for_one_or_for_several(question: str, many: bool) -> None:
    assert read_question(question).many is many


def test_what_belongs_to_something_and_what_is_a_reason_is_further_from_the_point() -> None:
    terms = read_question("delete lines of an invoice because it failed").terms
    assert [(term.options[0], term.distance, term.leads) for term in terms] == [
        (stem("delete"), 0, True),
        (stem("lines"), 0, False),
        (stem("invoice"), 1, False),
        (stem("failed"), 2, False),
    ]


@rows("words", ["merge merges merged merging", "create creates created creating creation", "list lists listed",
     "policy policies", "cancel cancelled cancels", "run running runs ran", "pay pays paying payment payments paid",
     "alias aliases", "status statuses", "address addresses", "index indices", "person people", "comment comments commented",
     "region regions", "version versions", "replica replicas", "schema schemas", "delete deletion deletes"])  # fmt: skip
def test_forms_of_a_word_are_one_word(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@rows("words", ["alias ali", "status stat", "region reg registry", "comment com", "station status", "union unit", "news new", "listing list",
     "version verse", "element elect"])  # fmt: skip
def test_words_that_look_alike_stay_apart(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == len(words.split())


def test_names_in_every_spelling_give_the_same_words() -> None:
    spellings = ["listUserRepos", "list_user_repos", "ListUserRepos", "list-user-repos", "/list/user/repos"]
    assert {tuple(identifier_words(name)) for name in spellings} == {("list", "user", "repo")}
    assert identifier_words("getHTTPLog2") == ["get", "http", "log", "2"]
    assert identifier_words("größeListe") == ["größe", "list"]


def test_the_thesaurus_is_read_in_its_directions() -> None:
    assert stem("customer") in synonyms("client")
    assert stem("client") in synonyms(stem("customer"))
    assert stem("secret") in synonyms(stem("passphrase"))
    assert stem("rotate") in associations(stem("hacked")) - synonyms(stem("hacked"))
    assert stem("hacked") not in associations(stem("rotate"))
    assert all(text_words(meant) or meant for meant in PHRASES.values())
    assert not any(phrase != phrase.lower() or "'" in phrase for phrase in PHRASES)
