"""Answers to a template's questions: read, checked, and kept."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.scaffold import find_template
from mcpfactory_codegen.servers.template_answers import (
    TemplateQuestion,
    checked_answers,
    parse_answer_options,
    read_questions,
    render_answers,
    replace_answers_table,
    replace_template_setting,
    unsafe_settings,
    variants,
)
from mcpfactory_codegen.servers.templates import TemplateSourceError
from mcpfactory_codegen.servers.update import update_server
from tests.subtest_table import parametrize_subtests

ASKED = (
    TemplateQuestion("words", "str", "", ""),
    TemplateQuestion("kind", "str", "a", "", ("a", "b")),
    TemplateQuestion("many", "int", "1", ""),
    TemplateQuestion("share", "float", "0.5", ""),
    TemplateQuestion("loud", "bool", "true", ""),
    TemplateQuestion("secret", "str", "", "", hidden=True),
)


def own(folder: Path, settings: str, words: str = "{{ name }}") -> str:
    folder.mkdir(parents=True)
    (folder / "copier.yml").write_text(settings)
    (folder / "a.txt.jinja").write_text(words)
    return str(folder)


def test_answers_become_what_the_question_wants() -> None:
    given = parse_answer_options(["words=a=b", "kind=b", "many=3", "share=.25", "loud=no"])
    found = checked_answers(given, ASKED, {})
    assert found == {"words": "a=b", "kind": "b", "many": 3, "share": 0.25, "loud": False}


@parametrize_subtests(
    "given, said",
    [
        ({"wrods": "x"}, "did you mean 'words'"),
        ({"secret": "x"}, "questions: words"),
        ({"kind": "c"}, "one of a, b"),
        ({"many": "x"}, "a value of type int"),
        ({"many": True}, "a value of type int"),
        ({"loud": "perhaps"}, "a value of type bool"),
    ],
)
def test_an_answer_that_cannot_be_taken_is_told(given: dict[str, str], said: str) -> None:
    with pytest.raises(TemplateSourceError) as raised:
        checked_answers(given, ASKED, {})
    assert said in raised.value.hint


def test_kept_answers_can_be_read_again_and_replaced() -> None:
    answers = {"words": 'a "b"\n[x]', "many": 3, "loud": False, "tags": ["a", "b"]}
    text = '[server]\nname = "a"\ntemplate = "t"\n' + render_answers(answers)
    assert tomllib.loads(text)["answers"] == answers
    changed = replace_answers_table(text + '\n[publish]\ntargets = ["pypi"]\n', {"many": 4})
    assert tomllib.loads(changed)["answers"] == {"many": 4}
    assert tomllib.loads(changed)["publish"] == {"targets": ["pypi"]}
    assert tomllib.loads(replace_answers_table('[server]\nname = "a"\n', {"many": 4}))["answers"] == {"many": 4}
    assert tomllib.loads(replace_template_setting(text, "package:x==1"))["server"]["template"] == "package:x==1"
    assert tomllib.loads(replace_template_setting('[server]\nname = "a"\n', "b"))["server"] == {
        "name": "a",
        "template": "b",
    }


def test_answers_are_used_again_by_update(tmp_path: Path) -> None:
    template = own(
        tmp_path / "templates" / "own", "name:\n  type: str\nwords:\n  type: str\n  default: d\n", "{{ words }}"
    )
    made = create_server(tmp_path / "servers", name="mine", template=template, answers={"words": "of mine"})
    assert (made.path / "a.txt").read_text() == "of mine"
    Path(template, "a.txt.jinja").write_text("now {{ words }}")
    update_server(made.path)
    assert (made.path / "a.txt").read_text() == "now of mine"
    with pytest.raises(CreateError, match="has no question 'name'"):
        create_server(tmp_path / "servers", name="other", template=template, answers={"name": "x"})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # copier leaves a folder listing open
def test_an_answer_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    template = own(tmp_path / "own", "name:\n  type: str\nwhere:\n  type: str\n  default: x\n")
    Path(template, "{{ where }}.txt").write_text("x")
    with pytest.raises(CreateError):
        create_server(tmp_path / "servers", name="mine", template=template, answers={"where": "../../../escaped"})
    assert not list(tmp_path.rglob("escaped*"))


def test_questions_are_read_as_data(tmp_path: Path) -> None:
    template = find_template(
        own(
            tmp_path / "own",
            "_tasks: [touch x]\nname: x\nkind:\n  type: str\n  choices:\n    First: a\n    Second: b\n  default: a\n"
            "loud:\n  default: true\n  help: |\n    Whether it\n    is loud\nq:\n  default: '{{ name }}'\n  when: false\n",
        )
    )
    name, kind, loud, hidden = read_questions(template)
    assert (name.default, kind.choices, loud.type, loud.help) == ("x", ("a", "b"), "yaml", "Whether it is loud")
    assert hidden.hidden
    assert unsafe_settings(template) == ("_tasks",)


@pytest.mark.parametrize(
    ("settings", "says"),
    [("[1]", "is not a mapping"), ("a: !include /etc/passwd", "!include"), ("a: [", "cannot be read")],
)
def test_settings_that_are_no_table_are_refused(tmp_path: Path, settings: str, says: str) -> None:
    template = find_template(own(tmp_path / "own", settings))
    with pytest.raises(TemplateSourceError, match=says) as raised:
        read_questions(template)
    assert raised.value.hint


def test_variants_are_the_defaults_and_each_choice_once() -> None:
    assert [one.name for one in variants(ASKED, ())] == ["defaults", "kind=b", "loud=false"]
    given = list(variants(ASKED, ("loud",), {"words": "x"}))
    assert [(one.name, dict(one.answers)) for one in given] == [
        ("answers as given", {"words": "x"}),
        ("kind=b", {"words": "x", "kind": "b"}),
    ]
