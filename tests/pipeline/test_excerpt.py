"""What a run shows of the log of a stage that failed."""

from __future__ import annotations

from mcpfactory_pipeline.run.runner import failed_stage_log_excerpt

LOG = """NOT PROMOTABLE  server
closed gates: security.orders, process.starts
score 80/100

security.orders [gate] at greet
  the text reads like an order
  hint: rewrite the text

descriptions.purpose [severity 1] at greet
  it says little

not checked:
  process.initializes, process.starts [gate]: no time
  http.origin: no time

not applicable: 110 rules""".splitlines()


def test_what_closed_a_gate_is_shown_and_nothing_else() -> None:
    assert failed_stage_log_excerpt(LOG, ["security.orders", "process.starts"]) == [
        "security.orders [gate] at greet",
        "  the text reads like an order",
        "  hint: rewrite the text",
        "  process.initializes, process.starts [gate]: no time",
    ]


def test_the_end_is_shown_where_the_log_says_nothing_of_a_gate() -> None:
    assert failed_stage_log_excerpt(LOG, []) == LOG[-15:]
    assert failed_stage_log_excerpt(["a", "b"], ["security.orders"]) == ["a", "b"]


def test_a_traceback_is_shown_whole() -> None:
    traceback = ["Traceback (most recent call last):", *["    raise Error"] * 30, "Error: torn"]
    assert failed_stage_log_excerpt(["$ build", *traceback], []) == traceback
    gate = ["process.starts [gate] at session", *(f"  {line}" for line in traceback)]
    assert failed_stage_log_excerpt([*gate, "", "not applicable: 1 rule"], ["process.starts"]) == gate
