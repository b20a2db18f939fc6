"""Servers whose tools behave wrongly in calls."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.broken_servers.healthy import Json, SampleServer, text

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector, Request


class NotImplementedServer(SampleServer):
    """Every tool answers NOT IMPLEMENTED; everything else is perfect."""

    rule = "tool-calls.some-succeed"
    follows = frozenset({"tool-calls.implemented"})

    def call(self, name: str, arguments: Json) -> Json:
        return text("NOT IMPLEMENTED", isError=True)


class HalfFinished(SampleServer):
    """One tool of two answers NOT IMPLEMENTED."""

    rule = "tool-calls.implemented"

    def call(self, name: str, arguments: Json) -> Json:
        return text("Not implemented yet", isError=True) if name == "moon_phase" else super().call(name, arguments)


class Promising(SampleServer):
    """One of two tools returns "coming soon" without isError."""

    rule = "placeholder-answers.not-implemented"

    def call(self, name: str, arguments: Json) -> Json:
        return text("This feature is coming soon!") if name == "moon_phase" else super().call(name, arguments)


class OneTrack(SampleServer):
    """Returns the same text for each sum."""

    rule = "placeholder-answers.constant"

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        del add["outputSchema"]
        return [add, moon]

    def call(self, name: str, arguments: Json) -> Json:
        return text("The sum was computed with great care.") if name == "add" else super().call(name, arguments)


class HealthyListing(SampleServer):
    """Returns texts such as "coming soon" that are about films and not about the tool."""

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        words = {
            "type": "object",
            "properties": {"q": {"type": "string", "description": "What to look for."}},
            "required": ["q"],
        }
        del add["outputSchema"]
        return [
            {
                **add,
                "name": "find_film",
                "description": "Find a film in the cinema of the zoo by words of its title.",
                "inputSchema": words,
            },
            moon,
        ]

    def call(self, name: str, arguments: Json) -> Json:
        return (
            text("No film has these words.") if name == "find_film" else text("Coming soon: Dune 3. TODO: feed the fox")
        )


class Mortal(SampleServer):
    """Dies in a tool."""

    own_process = True
    rule = "tool-calls.answered"

    def call(self, name: str, arguments: Json) -> Json:
        if name == "moon_phase":
            os._exit(3)
        return super().call(name, arguments)


class Liar(SampleServer):
    """Returns content that does not match its output schema."""

    rule = "tool-calls.output-schema"

    def call(self, name: str, arguments: Json) -> Json:
        result = super().call(name, arguments)
        return {**result, "structuredContent": {"sum": "five"}} if name == "add" else result


class Forgetful(SampleServer):
    """Declares an output schema and returns no structured content."""

    rule = "tool-calls.output-schema"

    def call(self, name: str, arguments: Json) -> Json:
        return text(json.dumps(arguments))


class Moonless(SampleServer):
    """Returns no phase for one of the cities in its schema."""

    rule = "tool-calls.output-schema"

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        city = {"type": "string", "description": "Where to look.", "enum": ["Oslo", "Lima", "Cairo"]}
        phase = {"type": "object", "properties": {"phase": {"type": "string"}}, "required": ["phase"]}
        return [add, {**moon, "inputSchema": {"type": "object", "properties": {"city": city}}, "outputSchema": phase}]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            return super().call(name, arguments)
        phase = {"phase": None if arguments.get("city") == "Cairo" else "waxing"}
        return text(json.dumps(phase), structuredContent=phase)


class Swallower(SampleServer):
    """Catches the exception of a tool and returns its text as a result."""

    rule = "tool-calls.error-flag"

    def call(self, name: str, arguments: Json) -> Json:
        return text("Error: KeyError: 'moon'") if name == "moon_phase" else super().call(name, arguments)


class Rounder(SampleServer):
    """Adds integers as floating-point numbers."""

    rule = "tool-calls.large-integers"

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        number = {"type": "integer", "description": "One summand.", "examples": [2]}
        schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
        return [{**add, "inputSchema": schema}, moon]

    def call(self, name: str, arguments: Json) -> Json:
        return super().call(name, {key: int(float(value)) for key, value in arguments.items()})


class Contentless(SampleServer):
    """Returns content that is not a list."""

    rule = "content.schema"

    def call(self, name: str, arguments: Json) -> Json:
        return {"content": "waxing"} if name == "moon_phase" else super().call(name, arguments)


class Tracer(SampleServer):
    """Shows its stack trace to the model."""

    rule = "tool-calls.error-text"

    def call(self, name: str, arguments: Json) -> Json:
        trace = 'Traceback (most recent call last):\n  File "/srv/zoo/moon.py", line 3\nValueError: no moon'
        return text(trace, isError=True) if name == "moon_phase" else super().call(name, arguments)


# --- calls in other situations ---


class Indulgent(SampleServer):
    """Uses another default than its schema declares."""

    rule = "tool-calls.defaults"

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        place = {"type": "string", "description": "Where to look.", "default": "north", "enum": ["north", "south"]}
        return [add, {**moon, "inputSchema": {"type": "object", "properties": {"half": place}}}]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            return super().call(name, arguments)
        return text("waxing" if arguments.get("half", "south") == "south" else "waning")


class Butterfly(SampleServer):
    """Changes the moon with its third sum, although both tools are read-only."""

    rule = "tool-calls.side-effects"
    sums = 0

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            self.sums += 1
            return super().call(name, arguments)
        return text("waxing" if self.sums < 3 else "waning")


class Crosser(SampleServer):
    """Exchanges the results of two simultaneous requests."""

    rule = "tool-calls.overlapping"

    def feed_all(self, lines: list[str]) -> None:
        requests = [json.loads(line) for line in lines]
        numbers = [request["id"] for request in requests]
        for request, number in zip(requests, reversed(numbers), strict=True):
            self.feed(json.dumps({**request, "id": number}))


class Mayfly(SampleServer):
    """Dies at the second call of moon_phase."""

    own_process = True
    rule = "tool-calls.answered"
    looks = 0

    def call(self, name: str, arguments: Json) -> Json:
        self.looks += name == "moon_phase"
        if self.looks > 1:
            os._exit(3)
        return super().call(name, arguments)


class Domino(SampleServer):
    """Does not respond to its second sum, and dies at moon_phase; its third tool works."""

    rule = "tool-calls.answered"
    sums = 0

    def tools(self) -> list[Json]:
        tide = {"name": "tide", "description": "Tell whether the tide is high or low at the zoo."}
        return [*super().tools(), {**super().tools()[1], **tide}]

    def call(self, name: str, arguments: Json) -> Json:
        self.sums += name == "add"
        if name == "moon_phase":
            raise SystemExit
        return super().call(name, arguments)

    def respond(self, message: Json) -> Json | None:
        answer = super().respond(message)
        return None if (message.get("params") or {}).get("name") == "add" and self.sums == 2 else answer


class Deaf(SampleServer):
    """Does not respond to a ping during moon_phase, which takes more than a second."""

    own_process = True
    rule = "tool-calls.ping"

    def call(self, name: str, arguments: Json) -> Json:
        time.sleep(1.2 * (name == "moon_phase"))
        return super().call(name, arguments)


class Resentful(SampleServer):
    """Does not respond to moon_phase after one call was canceled."""

    own_process = True
    rule = "tool-calls.cancellation"
    hurt = False

    def call(self, name: str, arguments: Json) -> Json:
        time.sleep(0.2 * (name == "moon_phase"))
        return super().call(name, arguments)

    def respond(self, message: Json) -> Json | None:
        self.hurt = self.hurt or message.get("method") == "notifications/cancelled"
        hidden = self.hurt and (message.get("params") or {}).get("name") == "moon_phase"
        return None if hidden else super().respond(message)


class HealthyGrumbler(SampleServer):
    """Runs one call at a time, and responds even to canceled calls."""

    own_process = True
    made: tuple[Any, ...] = ()

    def call(self, name: str, arguments: Json) -> Json:
        time.sleep(0.2 * (name == "moon_phase"))
        return super().call(name, arguments)

    def respond(self, message: Json) -> Json | None:
        if message.get("method") == "tools/call":
            self.made = (*self.made, message.get("id"))
        if message.get("method") == "notifications/cancelled" and message["params"]["requestId"] in self.made:
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "too late"}}
        return super().respond(message)


# --- behaviour towards an API, seen by the stub upstream ---


class HealthyMessenger(SampleServer):
    """Its tools call an API, as those of generated servers do."""

    own_process = True
    with_cases = True

    def tools(self) -> list[Json]:
        cage = {"type": "integer", "description": "Number of the cage."}
        name = {"type": "string", "description": "What to call it."}
        return [
            {
                "name": "get_animal",
                "description": "Return who lives in a cage and since when.",
                "inputSchema": {"type": "object", "properties": {"cage": cage}, "required": ["cage"]},
                "annotations": {"readOnlyHint": True},
            },
            {
                "name": "rename_animal",
                "description": "Give the animal of a cage another name, for good.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"cage": cage, "name": name},
                    "required": ["cage", "name"],
                },
            },
        ]

    def call(self, name: str, arguments: Json) -> Json:
        path = f"/cages/{arguments['cage']}"
        if name == "get_animal":
            return self.send("GET", f"{path}?detail=full")
        return self.send("PATCH", path, {"name": arguments["name"]})

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        # Most server processes call no API, and importing urllib takes longer than everything else.
        import urllib.error
        import urllib.request
        from http.client import HTTPException

        headers = {"X-Api-Key": os.environ["ZOO_API_KEY"], "Content-Type": "application/json"}
        request = urllib.request.Request(os.environ["MCPFACTORY_BASE_URL"] + path, data, headers, method=method)
        limit = float(os.environ.get("MCPFACTORY_TIMEOUT", "5"))
        try:
            with opener().open(request, timeout=limit) as response:
                return self.answered(self.take(response, time.monotonic() + limit))
        except urllib.error.HTTPError as error:
            with error:
                return self.refused(error, request)
        except (OSError, HTTPException, ValueError) as error:
            return text(f"the API failed: {error}", isError=True)

    def take(self, response: HTTPResponse, deadline: float) -> str:
        content = b""
        while data := response.read1(65536):
            content += data
            if len(content) > 1_000_000:
                raise ValueError("more than a megabyte")
            if time.monotonic() > deadline:
                raise ValueError("too slow")
        return content.decode()

    def answered(self, content: str) -> Json:
        return text(content)

    def refused(self, error: HTTPError, request: Request) -> Json:
        return text(f"the API answered {error.code}", isError=True)


def opener() -> OpenerDirector:
    """Return an opener that returns a redirect unchanged."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    return build_opener(NoRedirects)


class Misdirected(HealthyMessenger):
    """Requests the wrong cage."""

    rule = "tool-calls.api-requests"
    follows = frozenset({"tool-calls.cases"})

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        return super().send(method, path.replace("/cages/", "/cage/") if method == "GET" else path, body)


class Inventor(HealthyMessenger):
    """Answers without calling the API."""

    rule = "tool-calls.api-requests"

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        return text("Leo, since spring")


class Pessimist(HealthyMessenger):
    """Reports the API's responses as errors."""

    rule = "tool-calls.cases"

    def call(self, name: str, arguments: Json) -> Json:
        result = super().call(name, arguments)
        return {**result, "isError": True} if name == "rename_animal" else result


class Hypocrite(HealthyMessenger):
    """Sends a POST before it reads, although it declares to be read-only."""

    rule = "tool-calls.read-only"
    follows = frozenset({"tool-calls.api-requests"})

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        if method == "GET":
            super().send("POST", "/visits", {})
        return super().send(method, path, body)


class Uncharted(HealthyMessenger):
    """Has a tool without a case."""

    rule = "tool-calls.coverage"

    def tools(self) -> list[Json]:
        return [
            *super().tools(),
            {"name": "feed", "description": "Feed whoever is hungry.", "inputSchema": {"type": "object"}},
        ]


class Blabbermouth(HealthyMessenger):
    """Shows its API key to the model."""

    rule = "security.secret-exposure"

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        result = super().send(method, path, body)
        told = text(f"{result['content'][0]['text']} (with key {os.environ['ZOO_API_KEY']})")
        return {**result, **told}


class Gossip(SampleServer):
    """Shows its environment to the model."""

    own_process = True
    rule = "security.secret-exposure"

    def call(self, name: str, arguments: Json) -> Json:
        return text(repr(dict(os.environ))) if name == "moon_phase" else super().call(name, arguments)


class Diarist(SampleServer):
    """Writes its environment to the log."""

    own_process = True
    rule = "security.secret-exposure"

    def begin(self) -> None:
        print(dict(os.environ), file=sys.stderr)


class Informer(SampleServer):
    """Sends its environment to the client as a log message."""

    own_process = True
    rule = "security.secret-exposure"

    def call(self, name: str, arguments: Json) -> Json:
        data = {"level": "emergency", "data": repr(dict(os.environ))}
        if self.agreed:
            self.write({"jsonrpc": "2.0", "method": "notifications/message", "params": data})
        return super().call(name, arguments)


# --- servers that do nothing ---


class OneSentence(SampleServer):
    """Returns the same sentence for every tool."""

    rule = "placeholder-answers.identical-tools"

    def tools(self) -> list[Json]:
        tools = super().tools()
        tools[0] = {**tools[0], "inputSchema": {"type": "object"}}
        del tools[0]["outputSchema"]
        return tools

    def call(self, name: str, arguments: Json) -> Json:
        return text("The zoo thanks you for your visit.")


class Wordless(SampleServer):
    """Returns an empty result for every tool."""

    rule = "placeholder-answers.empty"

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        del add["outputSchema"]
        return [add, moon]

    def call(self, name: str, arguments: Json) -> Json:
        return text("")


class HealthyRegister(SampleServer):
    """Counts, stores values, and returns fixed sentences about the future, with and without an argument."""

    def tools(self) -> list[Json]:
        word = {"type": "string", "description": "Which one.", "examples": ["Work in progress"]}
        schema = {"type": "object", "properties": {"word": word}, "required": ["word"]}
        told = {
            "count_people": ("Count the people of a group who are registered.", schema),
            "show_board": ("Show the cards in a column of the board.", schema),
            "opening": ("Tell when the newest house of the zoo opens.", {"type": "object"}),
        }
        return [
            {"name": name, "description": said, "inputSchema": takes, "annotations": {"readOnlyHint": True}}
            for name, (said, takes) in told.items()
        ]

    def call(self, name: str, arguments: Json) -> Json:
        answers = {"count_people": "2 people are registered", "opening": "The house of the apes is under construction."}
        return text(answers.get(name, f"The column has no cards: {arguments.get('word')}"))


class StillEchoing(HealthyListing):
    """Returns WIP with its arguments."""

    rule = "placeholder-answers.not-implemented"

    def call(self, name: str, arguments: Json) -> Json:
        return text(f"WIP ({arguments['q']})") if name == "find_film" else super().call(name, arguments)


class Shrouded(SampleServer):
    """Requires a login, and reports this with every tool."""

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        del add["outputSchema"]
        return [add, moon]

    def call(self, name: str, arguments: Json) -> Json:
        return text("Please sign in to the zoo first.")


class Woolgatherer(HealthyMessenger):
    """Calls the API, but returns something else, for example from a hook of its owner."""

    rule = "placeholder-answers.lost-data"

    def answered(self, content: str) -> Json:
        return text("The animals are fine.")


class Mangler(HealthyMessenger):
    """Returns another name than the API, which cannot be distinguished from a converting hook."""

    rule = "placeholder-answers.lost-data"
    tolerated = True

    def answered(self, content: str) -> Json:
        return text(content.replace("Le", "Ta"))


class HealthyConverter(HealthyMessenger):
    """Returns the API's data in another form, such as capital letters or degrees Fahrenheit."""

    def answered(self, content: str) -> Json:
        return text(f"WE ARE TOLD {content.upper()}")


class HealthyStoryteller(HealthyMessenger):
    """Rewords the API's response."""

    def answered(self, content: str) -> Json:
        return text("The keeper says: " + content.replace('"', "'"))
