"""`mcpfactory evaluate --model` asks a model with the real server and an API behind it; the key it has shows nowhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.test_evaluate import CASES, MODEL, ROOT
from tests.pipeline.evaluation.model_endpoint import KEY, serve_model
from tests.pipeline.evaluation.scripted_model import Step
from tests.skip_conditions import needs
from tests.timeouts import TIMEOUT, wait_until

CRIME = "Show me crime novels for less than ten euros, cheapest first."
SCRIPT = {
    CRIME: [
        Step(
            "find books: returns books that meet conditions, best rated, sort",
            {"list_books": {"genre": ["crime"], "max_price": 10, "sort": "price"}},
        )
    ],
    "Give 9780062073488 five stars.": [
        Step("write a review", {"add_review": {"isbn": "9780062073488", "stars": 5, "text": "Fine."}}),
        Step("read the reviews of a book: list reviews", {"list_reviews": {"isbn": "9780062073488"}}),
    ],
}


@pytest.fixture(scope="module")
def endpoint():
    with serve_model(SCRIPT) as served:
        yield served


@pytest.fixture
def evals(shop):
    """The bookshop with three cases, of which the model cannot answer the second: its review says something else."""
    folder = shop.folder / "servers/bookshop"
    (folder / "evals").mkdir()
    (folder / "evals/cases.yaml").write_text(CASES)
    (folder / "tests/upstream.py").write_text(MODEL.format(service=str(ROOT / "docs/examples/bookshop/service.py")))
    config = shop.folder / "mcpfactory.toml"
    before = config.read_text()
    yield folder
    config.write_text(before)
    shutil.rmtree(folder / "evals")
    (folder / "tests/upstream.py").unlink()


def at(shop, environ=None):
    made = shop.at(shop.folder)
    made.environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY} if environ is None else environ
    return made


def set_endpoint(shop, model: str, url: str, more: str = "") -> None:
    """Write the endpoint of a model into the workspace's settings, which `evals` restores."""
    with (shop.folder / "mcpfactory.toml").open("a") as config:
        config.write(f'\n[pipeline.evaluation.endpoints."{model}"]\nurl = "{url}"\n{more}')


def kept(folder: Path) -> str:
    return "".join(file.read_text() for file in sorted((folder / "evals/reports").iterdir()))


def test_a_model_is_asked_in_both_modes_and_the_report_is_kept_compared_and_judged(shop, evals, endpoint):
    set_endpoint(shop, "openai:scripted", f"{endpoint.root}/v1", "read = 2\nwritten = 8\n")
    ask = ("evaluate", "bookshop", "--model", "openai:scripted")
    both = at(shop)(*ask, "--mode", "full", "--mode", "search", "--report", "--json")
    assert both.code == 0, both.err
    full, search = both.data["figures"]
    verdicts = {one["case"]: one["verdict"] for one in both.data["attempts"] if one["setting"]["mode"] == "full"}
    assert verdicts == {"cheap-crime": "passed", "a-new-review": "wrong-answer", "weather": "passed"}
    assert (full["rate"]["questions"], round(full["rate"]["rate"], 2)) == (3, 0.67)
    assert (full["tools"], search["tools"]) == (11, 3)
    assert search["usage"]["read"] < full["usage"]["read"]
    assert full["cost"] > 0
    assert {"expected": "list_books", "chosen": "list_books", "times": 1} in full["confusion"]
    found = [
        one for one in both.data["attempts"] if one["setting"]["mode"] == "search" and one["case"] == "cheap-crime"
    ]
    assert [call["tool"] for call in found[0]["calls"]] == ["search_tools", "list_books"]
    file = evals / "evals/reports/openai-scripted.json"
    assert json.loads(file.read_text())["attempts"] == both.data["attempts"]
    text = at(shop)(*ask, "--baseline", str(file), "--min", "0.5")
    assert text.code == 1
    assert "full, full against openai:scripted" in text.out
    assert "+0 points" in text.out
    assert "a-new-review: wrong-answer: the answer of list_reviews does not say 'Good.'" in text.out
    assert "the lower bound of the pass rate is 21%, below the required 50%" in text.err
    spent = at(shop)(*ask, "--max-cost", "0.0001", "--json")
    assert (spent.code, len(spent.data["attempts"]) < 3) == (7, True)
    assert "questions have no answer" in spent.err


def test_a_key_that_the_endpoint_repeats_stands_in_nothing_that_is_printed_or_kept(shop, evals, endpoint):
    (evals / "evals/cases.yaml").write_text(
        CASES.partition("  - name: a-new-review")[0]
    )  # each case starts two programs
    ask = ("evaluate", "bookshop", "--report", "--model")
    for model in ("talking+telling", "scripted+telling", "broken+telling", "scripted"):
        set_endpoint(shop, f"anthropic:{model}", endpoint.root)
    for model in ("anthropic:talking+telling", "anthropic:scripted+telling"):
        done = at(shop)(*ask, model)
        assert KEY not in done.out + done.err + kept(evals)
        assert "***" in kept(evals), "the endpoint did write it"
    broken = at(shop)(*ask, "anthropic:broken+telling")
    assert (broken.code, KEY in broken.out + broken.err) == (7, False)
    assert "500" in broken.err
    wrong = at(shop, {"ANTHROPIC_API_KEY": "sk-another-secret"})(*ask, "anthropic:scripted")
    assert (wrong.code, "401" in wrong.err, "sk-another-secret" in wrong.err) == (5, True, False)


def test_cases_are_checked_with_swapped_words_and_confused_tools_are_suggested(shop, evals, endpoint):
    set_endpoint(shop, "openai:scripted", f"{endpoint.root}/v1")
    ask = ("--model", "openai:scripted")
    checked = at(shop)("evaluate", "bookshop", "--check-cases", "--json", *ask)
    worth = {one["case"]: one for one in checked.data["cases"]}
    assert worth["cheap-crime"]["worth"] == "tells", "the model goes by descriptions"
    assert worth["cheap-crime"]["passed"] == {"own": 1.0, "shuffled": 0.0, "renamed": 1.0, "swapped": 0.0}
    assert (worth["a-new-review"]["worth"], worth["weather"]["worth"]) == ("fails", "restraint")
    assert checked.code == 0, "none is worthless"
    before = len(endpoint.requests)
    alone = at(shop, {})("evaluate", "bookshop", "--check-cases")
    assert "is worth" in alone.out
    nobody = at(shop, {})("evaluate", "bookshop", "--suggest")
    assert (nobody.code, "bookshop --model KIND:MODEL --report shows" in nobody.err) == (0, True)
    assert len(endpoint.requests) == before, "no model was asked"
    script, endpoint.script = endpoint.script, {CRIME: [Step("read the reviews of a book: list reviews", {})]}
    try:
        at(shop)("evaluate", "bookshop", "--report", *ask)
    finally:
        endpoint.script = script
    found = at(shop, {})("evaluate", "bookshop", "--suggest", "--json")
    first = found.data["pairs"][0]
    assert (first["expected"], first["chosen"], first["questions"]) == ("list_books", "list_reviews", {CRIME: 1})
    assert "Find books" in first["texts"]["list_books"]
    proposed = at(shop, {})("evaluate", "bookshop", "--propose", "--json")
    names = [one["name"] for one in proposed.data["proposals"]]
    assert "get-book" in names
    assert "cheap-crime-otherwise" not in names, "the call that the model made in its place failed"
    assert "list-books" not in names, "a case expects it"
    assert "proposals:" in (evals / proposed.data["file"]).read_text()
    text = at(shop, {})("evaluate", "bookshop", "--suggest")
    assert "list_books is confused_cases with list_reviews, 1 times by openai:scripted" in text.out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--model", "gpt"), 4, "'gpt' is not a valid model name"),
        (("--model", "openai:x"), 4, "OPENAI_API_KEY is not set"),
        (("--model", "openai:local", "--max-cost", "1"), 4, "the price of openai:local is unknown"),
        (("--mode", "search"), 2, "without --model"),
        (("--model", "openai:x", "--mode", "fast"), 2, "one of full, search"),
        (("--baseline", "x.json"), 2, "without --model"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is_asked(shop, evals, options, code, words):
    set_endpoint(shop, "openai:local", "http://127.0.0.1:9")
    done = at(shop, {})("evaluate", "bookshop", *options)
    assert (done.code, words in done.err) == (code, True), done.err
    assert "hint:" in done.err


def in_session(leader: int) -> list[int]:
    """The processes that hear what is typed at the terminal of this one."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            found += [int(place.name)] if os.getsid(int(place.name)) == leader else []
    return found


@contextmanager
def heard(number: signal.Signals) -> Iterator[None]:
    """What is started meanwhile does not ignore a signal, as what a shell runs in the background does."""
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@needs("linux")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_what_ends_it_ends_the_models_of_the_api_without_their_words(shop, evals, endpoint, how):
    """Ctrl-C goes to the whole group of the terminal; a kill to one process alone. Who is left would hold the pipes open."""
    before = len(endpoint.requests)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MCPFACTORY_")}
    set_endpoint(shop, "openai:slow", f"{endpoint.root}/v1")
    ask = ("evaluate", "bookshop", "--model", "openai:slow")
    with (
        heard(signal.SIGINT),
        subprocess.Popen(
            [sys.executable, "-m", "mcpfactory", *ask],
            cwd=shop.folder,
            env={**environ, "OPENAI_API_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        wait_until(lambda: len(endpoint.requests) >= before + 2)  # two questions at once, each with an API of its own
        assert in_session(process.pid) == [process.pid], (
            "who else hears of Ctrl-C may die of it first, and that be told"
        )
        (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
        out, err = process.communicate(timeout=TIMEOUT)
    told = [line for line in err.splitlines() if not line.endswith("…")]
    if how == signal.SIGINT:
        assert (process.returncode, out, told) == (130, "", ["interrupted"])
    else:
        assert (process.returncode, out, told) == (-how, "", [])
