"""What a program said last stands in an error whole: no line and no word is cut."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.build.programs import ToolRejectedInputError, last_lines, run_uv


def test_short_words_are_all_there():
    assert last_lines("one\n\n  two  \n") == "one; two"
    assert last_lines("") == ""


def test_lines_are_left_out_from_the_beginning_and_none_is_cut():
    text = "\n".join(f"line {number} of what was said" for number in range(100))
    end = last_lines(text, limit=60)
    assert end == "…; line 98 of what was said; line 99 of what was said"


def test_one_long_line_is_whole():
    assert last_lines("before\n" + "word " * 1_000, limit=60) == f"…; {('word ' * 1_000).strip()}"


def test_exceptions_are_told_without_stack_frames():
    frames = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import b\n    ^^^^^^^^\n'
    error = "ModuleNotFoundError: No module named 'b'"
    inner = "".join(f"      {line}\n" for line in f"[stderr]\n{frames}{error}".splitlines())
    assert last_lines(f"building\n{frames}{error}\n") == f"building; {error}"
    assert last_lines(f"x failed\n{inner}") == f"x failed; [stderr]; {error}"


def test_what_uv_refuses_is_told_whole(tmp_path):
    needs = [f"a-distribution-that-nobody-has-{number}" for number in range(40)]
    (tmp_path / "requirements.txt").write_text("\n".join(needs))
    with pytest.raises(ToolRejectedInputError) as told:
        run_uv("pip", "compile", "--no-index", "requirements.txt", cwd=tmp_path)
    assert "No solution found when resolving dependencies" in str(told.value)
    assert "a-distribution-that-nobody-has-" in str(told.value)


def test_the_log_has_each_command_that_printed_something(tmp_path, capfd):
    run_uv("venv", "--quiet", "silent", cwd=tmp_path)
    run_uv("venv", "unlogged", cwd=tmp_path, log=False)
    assert capfd.readouterr().out == ""
    run_uv("venv", "logged", cwd=tmp_path)
    command, *output = capfd.readouterr().out.splitlines()
    assert command.startswith("$ ")
    assert output
