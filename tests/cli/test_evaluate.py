"""`mcpfactory evaluate` asks a server's questions: in its own process, with a model of its API, in both modes."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = """\
cases:
  - name: cheap-crime
    question: "Show me crime novels for less than ten euros, cheapest first."
    right:
      - - {tool: list_books, arguments: {genre: [crime], max_price: 10, sort: price}, says: ["And Then There Were None"]}
  - name: a-new-review
    question: "Give 9780062073488 five stars."
    right:
      - - {tool: add_review, arguments: {isbn: "9780062073488", stars: 5, text: "Good."}, free: [text]}
        - {tool: list_reviews, arguments: {isbn: "9780062073488"}, says: ["Good."]}
  - name: weather
    question: "Will it rain?"
    right: []
"""
MODEL = """\
import json, subprocess, sys
with subprocess.Popen([sys.executable, {service!r}, "--port", "0"], stdout=subprocess.PIPE, text=True) as service:
    found = {{"MCPF_BOOKSHOP_BASE_URL": service.stdout.readline().strip(), "MCPF_BOOKSHOP_API_KEY": "bookworm"}}
    print(json.dumps({{"environment": found}}), flush=True)
    sys.stdin.read()
    service.terminate()
"""


def test_the_questions_are_asked_in_both_modes_with_a_model_and_without(shop):
    assert shop("evaluate", "bookshop").code == 3
    folder = shop.folder / "servers/bookshop"
    (folder / "evals").mkdir()
    (folder / "evals/cases.yaml").write_text(CASES)
    fits = shop.at(shop.folder)("evaluate", "bookshop", "--json")
    assert fits.code == 0, fits.err
    assert {case["called"] for case in fits.data["cases"]} == {False}
    (folder / "tests/upstream.py").write_text(MODEL.format(service=str(ROOT / "docs/examples/bookshop/service.py")))
    found = shop.at(shop.folder)("evaluate", "bookshop", "--report", "--json")
    assert (found.code, found.data["faults"]) == (0, [])
    assert {case["called"] for case in found.data["cases"]} == {True}
    assert {mode: one["judged"] for mode, one in found.data["modes"].items()} == {"full": 2, "search": 2}
    assert found.data["modes"]["search"]["tools"] == 3
    page = (folder / "evals/report.md").read_text()
    assert "| cheap-crime |" in page
    assert "no tool fits" in page
    shutil.rmtree(folder / "evals")


def test_ways_that_are_not_right_are_told_and_the_code_says_so(shop):
    folder = shop.folder / "servers/bookshop"
    (folder / "evals").mkdir()
    (folder / "tests/upstream.py").write_text(MODEL.format(service=str(ROOT / "docs/examples/bookshop/service.py")))
    wrong = CASES.replace("And Then There Were None", "Moby Dick").replace('text: "Good."}', 'stars2: 1, text: "x"}')
    (folder / "evals/cases.yaml").write_text(wrong)
    found = shop.at(shop.folder)("evaluate", "bookshop")
    assert found.code == 1
    assert "list_books does not say 'Moby Dick'" in found.err
    assert "add_review does not take the arguments" in found.err
    low = shop.at(shop.folder)("evaluate", "bookshop", "--min", "1", "--profile", "read-only")
    assert low.code == 1
    assert "the server has no tool add_review" in low.err
    (folder / "tests/upstream.py").write_text("print('nonsense')")
    assert shop.at(shop.folder)("evaluate", "bookshop").code == 4
    shutil.rmtree(folder / "evals")
    (folder / "tests/upstream.py").unlink()
