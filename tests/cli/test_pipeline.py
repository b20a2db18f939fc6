from __future__ import annotations


def test_plan_names_every_stage_of_a_new_server_and_why(shop):
    steps = shop("pipeline", "plan", "--json").data
    assert [step["stage"] for step in steps] == ["generate", "build", "test", "validate", "staging"]
    assert all(step["verdict"] != "up-to-date" and step["reasons"] for step in steps)


def test_plan_runs_nothing(shop):
    shop("pipeline", "plan")
    assert list((shop.folder / "pipeline/state").glob("*.json")) == []


def test_status_knows_a_server_that_never_ran(shop):
    row = shop("pipeline", "status", "--json").data[0]
    assert (row["server"], row["channels"]) == ("bookshop", {})


def test_verify_holds_for_a_workspace_where_nothing_happened(shop):
    assert shop("pipeline", "verify").code == 0


def test_nothing_is_promoted_that_was_not_built(shop):
    done = shop("pipeline", "promote", "bookshop", "--channel", "staging")
    assert done.code == 1
    assert "hint:" in done.err
