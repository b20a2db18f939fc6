"""A model is asked as the endpoints of two vendors are; what they refuse, spoil or delay is dealt with."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.evaluation.model_endpoint import (
    EndpointError,
    ModelEndpoint,
    ModelUnreachableError,
    find_endpoint,
)
from mcpfactory_pipeline.checks.evaluation.model_runs import ShownTools, connected, make_system_prompt, run_conversation
from mcpfactory_pipeline.checks.evaluation.offered_tools import SearchModeTools
from mcpfactory_pipeline.workspace.settings import EndpointSettings
from mcpfactory_runtime import Server
from mcpfactory_runtime.errors import McpfactoryError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.testing import connect
from tests.pipeline.evaluation.model_endpoint import KEY, serve_model
from tests.pipeline.evaluation.scripted_model import Step
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio
KINDS = ("openai", "anthropic")
QUESTION = "Is it warm in Lisbon, and what is the tide there?"
SCRIPT = {
    QUESTION: [
        Step("weather: how warm it is", {"get_weather": {"city": "Lisbon"}}),
        Step("tide of the sea", {"get_tide": {"city": "Lisbon"}}),
    ],
    "Break it.": [Step("tide of the sea", {"get_tide": {"city": "Atlantis"}})],
}


@pytest.fixture(scope="module")
def endpoint():
    with serve_model(SCRIPT) as served:
        yield served


@pytest.fixture
def server() -> Server:
    made = Server("sea", instructions="Cities are in Portugal.")

    @made.tool
    def get_weather(city: str) -> str:
        """Say how warm it is somewhere, and whether it rains: the weather."""
        return f"{city}: 21 degrees"

    @made.tool
    def get_tide(city: str) -> str:
        """Say when the sea is high: the tide of a harbour."""
        if city == "Atlantis":
            raise ToolError("Atlantis is below the sea")
        return f"{city}: high at nine"

    return made


def of(endpoint, kind: str, habits: str, **more) -> ModelEndpoint:
    url = endpoint.root + ("/v1" if kind == "openai" else "")
    return ModelEndpoint(kind, habits, url, KEY, timeout=more.pop("timeout", 20), attempts=3, **more)


async def asked(endpoint, server, where: ModelEndpoint, question: str = QUESTION):
    async with connected(where) as connection, connect(server) as client:
        tools = await client.list_tools()
        chat = connection.chat(make_system_prompt(client.instructions), question, tools)
        return await run_conversation(chat, client, ShownTools(tools, SearchModeTools(tools)))


def made(done) -> list[tuple[str, int, bool]]:
    return [(one.tool, one.turn, one.failed) for one in done.calls]


@pytest.mark.parametrize("kind", KINDS)
async def test_turn_after_turn_calls_are_made_and_their_answers_told(endpoint, server, kind):
    done = await asked(endpoint, server, of(endpoint, kind, "scripted"))
    assert made(done) == [("get_weather", 1, False), ("get_tide", 2, False)]
    assert done.text == "That is what I found: Lisbon: 21 degrees Lisbon: high at nine"
    assert (done.turns, done.refused, done.cut) == (3, False, False)
    assert done.usage.written == 60
    assert 0 < done.usage.cached < done.usage.read
    assert 0 < done.waited <= done.seconds


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_in_parallel_are_one_turn(endpoint, server, kind):
    done = await asked(endpoint, server, of(endpoint, kind, "parallel"))
    assert made(done) == [("get_weather", 1, False), ("get_tide", 1, False)]
    assert done.turns == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_the_model_sees_names_descriptions_schemas_and_the_instructions_of_the_server(endpoint, server, kind):
    await asked(endpoint, server, of(endpoint, kind, "talking"))
    seen = endpoint.requests[-1]
    assert "Cities are in Portugal." in json.dumps(seen)
    first = seen["tools"][0] if kind == "anthropic" else seen["tools"][0]["function"]
    schema = first["input_schema" if kind == "anthropic" else "parameters"]
    assert (first["name"], first["description"][:7]) == ("get_weather", "Say how")
    assert schema["required"] == ["city"]
    assert set(first) == {"name", "description", "input_schema" if kind == "anthropic" else "parameters"}


@pytest.mark.parametrize("habit", ["rushed", "shaky"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_refused_for_the_moment_is_asked_again(endpoint, server, kind, habit):
    before = len(endpoint.requests)
    done = await asked(endpoint, server, of(endpoint, kind, f"scripted+{habit}"))
    assert len(done.calls) == 2
    assert len(endpoint.requests) - before == 6, "each of three turns twice"


async def test_arguments_that_are_no_json_are_told_to_the_model_which_may_mend_them(endpoint, server):
    done = await asked(endpoint, server, of(endpoint, "openai", "malformed"))
    assert made(done) == [("get_weather", 1, True), ("get_weather", 2, False), ("get_tide", 3, False)]
    assert done.calls[0].arguments is None


async def test_what_a_tool_refuses_is_told_as_a_failure(endpoint, server):
    done = await asked(endpoint, server, of(endpoint, "anthropic", "scripted"), "Break it.")
    assert made(done) == [("get_tide", 1, True)]
    (told,) = [
        one for one in endpoint.requests[-1]["messages"] if one["role"] == "user" and isinstance(one["content"], list)
    ]
    assert told["content"][0]["is_error"] is True
    assert "Atlantis is below the sea" in told["content"][0]["content"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_is_one(endpoint, server, kind):
    done = await asked(endpoint, server, of(endpoint, kind, "refusing"))
    assert (done.refused, done.calls) == (True, ())


@pytest.mark.parametrize("kind", KINDS)
async def test_who_never_ends_is_stopped(endpoint, server, kind):
    done = await asked(endpoint, server, of(endpoint, kind, "endless"))
    assert (done.cut, done.turns) == (True, 12)


@pytest.mark.parametrize(
    ("habits", "options", "words"),
    [
        ("broken", {}, "500"),
        ("nonsense", {}, "unexpected response"),
        ("slow", {"timeout": 0.2}, "timed out"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_endpoint_that_gives_no_answer_is_an_error_of_this_question_alone(
    *, endpoint, server, kind, habits, options, words
):
    where = replace(of(endpoint, kind, habits, **options), attempts=2)
    with pytest.raises(EndpointError) as caught:
        await asked(endpoint, server, where)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_that_drips_is_given_up(endpoint, server, kind):
    with pytest.raises(EndpointError, match=rf"{kind}:talking\+dripping: request timed out$"):
        await asked(endpoint, server, of(endpoint, kind, "talking+dripping", timeout=0.3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("habits", "key", "words"),
    [("scripted", "sk-wrong-one", "401"), ("stranger", KEY, "404"), ("streaming", KEY, "stream")],
)
async def test_what_is_refused_for_good_ends_the_evaluation_and_shows_no_key(
    *, endpoint, server, kind, habits, key, words
):
    with pytest.raises(ModelUnreachableError) as caught:
        await asked(endpoint, server, replace(of(endpoint, kind, habits), key=key))
    assert words in str(caught.value)
    assert key not in str(caught.value), "the endpoint repeats it in its message"


def test_an_endpoint_is_found_by_name_settings_and_environment_and_its_key_shows_nowhere():
    found = find_endpoint(
        "openai:a/b:7",
        EndpointSettings(url="https://me:pw@here.test/v1?token=x", key="MY_KEY"),
        environ={"MY_KEY": KEY},
    )
    assert (found.kind, found.model, found.name, found.key) == ("openai", "a/b:7", "openai:a/b:7", KEY)
    assert found.place == "https://here.test/v1"
    assert KEY not in repr(found)
    assert found.hide(f"it was {KEY}!") == "it was ***!"
    own = find_endpoint("anthropic:x", EndpointSettings(url="http://localhost:1"), environ={})
    assert (own.key, own.hide("none of it")) == ("none", "none of it")


@parametrize_subtests(
    "name, url, words",
    [
        ("gpt", "", "'gpt' is not a valid model name"),
        ("other:gpt", "", "'other:gpt' is not a valid model name"),
        ("openai:", "", "'openai:' is not a valid model name"),
        ("openai:x", "", "OPENAI_API_KEY is not set"),
        ("anthropic:x", "", "ANTHROPIC_API_KEY is not set"),
        ("openai:x", "file:///etc/passwd", "is not a valid http or https URL"),
        ("openai:x", "http://h:99999/v1", "is not a valid http or https URL"),
    ],
)
def test_what_cannot_be_an_endpoint_is_said(name, url, words):
    with pytest.raises(ConfigError, match=words) as caught:
        find_endpoint(name, EndpointSettings(url=url), environ={})
    assert isinstance(caught.value, McpfactoryError)
    assert caught.value.hint
