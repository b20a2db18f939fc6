"""Servers that act on canary arguments (a path, a part of a command, an address), and healthy ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.broken_servers.healthy import Json, RpcError, SampleServer, text

if TYPE_CHECKING:
    from pathlib import Path


def here() -> Path:
    """Return the folder of the zoo; import modules late, because only some servers need them."""
    from pathlib import Path

    return Path(__file__).parent


class Reading(SampleServer):
    """Base of the servers below, with one more tool, which is read-only and has a text argument."""

    own_process = True
    argument = "path"
    tool: ClassVar[Json] = {"name": "show_page", "description": "Show a page of the guide of the zoo, by its name."}
    sample = "cases.json"

    def tools(self) -> list[Json]:
        value = {"type": "string", "description": "Which one.", "examples": [self.sample]}
        schema = {"type": "object", "properties": {self.argument: value}, "required": [self.argument]}
        return [*super().tools(), {**self.tool, "inputSchema": schema, "annotations": {"readOnlyHint": True}}]

    def call(self, name: str, arguments: Json) -> Json:
        return self.show(arguments[self.argument]) if name == self.tool["name"] else super().call(name, arguments)

    def show(self, value: str) -> Json:
        raise NotImplementedError


class Climber(Reading):
    """Reads any given file, inside and outside its folder."""

    rule = "security.path-traversal"
    tolerated = True  # its argument is a path by design

    def show(self, value: str) -> Json:
        try:
            return text((here() / value).read_text()[:200])
        except (OSError, ValueError):
            return text("there is no such page", isError=True)


class Librarian(Climber):
    """Has an argument for the name of a page, and opens any file at that path."""

    tolerated = False
    argument = "page"


class Unescaper(Librarian):
    """Checks for dots before it decodes the name of a page."""

    def show(self, value: str) -> Json:
        from urllib.parse import unquote

        return text("no dots, please", isError=True) if "../" in value else super().show(unquote(value).lstrip("/"))


class HealthyGuide(Reading):
    """Reads files below its folder only."""

    def show(self, value: str) -> Json:
        try:
            file = (here() / value).resolve()
            if not file.is_relative_to(here()):
                return text("there is no such page", isError=True)
            return text(file.read_text()[:200])
        except (OSError, ValueError):
            return text("there is no such page", isError=True)


class HealthyScratchpad(Reading):
    """Reads temporary files only, which is its purpose."""

    sample = "."

    def show(self, value: str) -> Json:
        import tempfile
        from pathlib import Path

        root = Path(tempfile.gettempdir()).resolve()
        try:
            file = (root / value).resolve()
            inside = file.is_relative_to(root)
            return text(file.read_text()[:200] if inside and file.is_file() else f"{inside}: no page, no folder")
        except (OSError, ValueError):
            return text("there is no such page", isError=True)


class Shelled(Reading):
    """Passes a value to a shell."""

    rule = "security.command-injection"
    argument = "keeper"
    tool: ClassVar[Json] = {"name": "greet_keeper", "description": "Greet a keeper of the zoo by name."}
    sample = "Ada"

    def show(self, value: str) -> Json:
        import subprocess

        done = subprocess.run(f"echo Hello {value}", shell=True, capture_output=True, text=True, check=False)
        return text(done.stdout + done.stderr)


class Evaluator(Shelled):
    """Evaluates a value as Python."""

    argument = "sum"
    tool: ClassVar[Json] = {"name": "add_up", "description": "Add up the weights of the animals, such as 3+4."}
    sample = "3+4"

    def show(self, value: str) -> Json:
        try:
            return text(str(eval(value)))
        except Exception:  # noqa: BLE001 - any value may come
            return text("this is no sum", isError=True)


class Renderer(Shelled):
    """Evaluates what is in double braces, as a template engine does."""

    rule = "security.template-injection"

    def show(self, value: str) -> Json:
        import re

        return text(re.sub(r"\{\{([0-9*]+)\}\}", lambda found: str(eval(found[1])), f"Hello {value}"))


class Formatter(Shelled):
    """Formats a value with an object as placeholder."""

    rule = "security.template-injection"
    argument = "letter"
    tool: ClassVar[Json] = {"name": "preview_letter", "description": "Show a letter with the name {keeper.name} in it."}
    sample = "Dear {keeper.name}"

    def show(self, value: str) -> Json:
        try:
            return text(value.format(keeper=self))
        except (AttributeError, KeyError, IndexError, ValueError):
            return text("The letter has an unknown field.", isError=True)


class HealthyFormatter(Formatter):
    """Replaces one placeholder, and leaves all others."""

    rule = ""

    def show(self, value: str) -> Json:
        return text(value.replace("{keeper.name}", "Ada"))


class HealthyEngine(Renderer):
    """Evaluates templates, which is its documented purpose."""

    rule = ""
    tool: ClassVar[Json] = {"name": "render", "description": "Render a template with sums in double braces."}


class Subcontractor(Shelled):
    """Passes a value to a program, which may take it as an option."""

    rule = "security.option-injection"
    argument = "house"
    tool: ClassVar[Json] = {"name": "list_house", "description": "List the animals of a house of the zoo."}
    sample = "."

    def show(self, value: str) -> Json:
        return self.run_program("ls", value)

    def run_program(self, *command: str) -> Json:
        import subprocess

        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
        except (OSError, ValueError):
            return text("there is no such house", isError=True)
        return text((done.stdout or done.stderr or "nothing")[:200], isError=done.returncode > 0)


class HealthyOperand(Subcontractor):
    """Marks the end of the options before a value."""

    rule = ""

    def show(self, value: str) -> Json:
        return self.run_program("ls", "--", value)


class HealthyDashes(Subcontractor):
    """Refuses values that begin with a dash, in the words of a program."""

    rule = ""

    def show(self, value: str) -> Json:
        return text(f"unknown option {value}", isError=True) if value.startswith("-") else super().show(value)


class Paster(Shelled):
    """Pastes a value into an SQL query."""

    rule = "security.sql-injection"
    argument = "keeper"
    sample = "Ada"

    def show(self, value: str) -> Json:
        return self.find(f"SELECT name FROM keepers WHERE name = '{value}'")

    def find(self, query: str, *values: str) -> Json:
        import sqlite3

        with sqlite3.connect(":memory:") as database:
            database.executescript("CREATE TABLE keepers (name); INSERT INTO keepers VALUES ('Ada'), ('Grace')")
            try:
                found = [name for (name,) in database.execute(query, values)]
            except sqlite3.Error:
                return text("there is no such keeper", isError=True)
        return text(f"Found: {', '.join(found)}")


class HealthyClerk(Paster):
    """Passes a value as a parameter of an SQL query, and repeats the value."""

    rule = ""

    def show(self, value: str) -> Json:
        found = self.find("SELECT name FROM keepers WHERE name = ?", value)
        return text(f"{value}: {found['content'][0]['text']}")


class HealthyTally(Paster):
    """Counts the different letters of a value, so that different conditions could give different answers."""

    rule = ""

    def show(self, value: str) -> Json:
        return text(f"{len(set(value))} different letters, {len(set(value.split()))} different words")


class HealthyGreeter(Shelled):
    """Passes a value to a program, without a shell."""

    rule = ""

    def show(self, value: str) -> Json:
        import subprocess

        return text(subprocess.run(["echo", "Hello", value], capture_output=True, text=True, check=False).stdout)


class HealthyTerminal(Shelled):
    """Runs commands, which is its documented purpose."""

    rule = ""
    argument = "command"
    tool: ClassVar[Json] = {
        "name": "run_command",
        "description": "Run a shell command on the zoo's terminal and show its output.",
    }
    sample = "echo hello"

    def show(self, value: str) -> Json:
        import subprocess

        return text(subprocess.run(value, shell=True, capture_output=True, text=True, check=False).stdout or "nothing")


class Messenger(Reading):
    """Sends requests to any given address."""

    rule = "security.ssrf"
    argument = "url"
    tool: ClassVar[Json] = {"name": "preview_page", "description": "Preview a page about the zoo."}
    sample = "https://zoo.invalid/"
    schemes: tuple[str, ...] = ("http://", "https://")

    def show(self, value: str) -> Json:
        from urllib.request import ProxyHandler, build_opener

        if not value.startswith(self.schemes):
            return text("a page of which nothing is known")
        try:
            with build_opener(ProxyHandler({})).open(value, timeout=2) as response:
                return text(response.read(200).decode())
        except (OSError, ValueError):
            return text("a page of which nothing is known")


class Verbatim(Messenger):
    """Refuses its own machine by the text of the address."""

    rule = "security.address-filter"

    def show(self, value: str) -> Json:
        return text("a page of which nothing is known") if "127.0.0.1" in value else super().show(value)


class Opener(Messenger):
    """Opens file URLs, and reports that it cannot reach remote pages."""

    rule = "security.path-traversal"
    schemes = ("file://",)

    def show(self, value: str) -> Json:
        return super().show(value) if value.startswith(self.schemes) else text("out of reach", isError=True)


class Templated(SampleServer):
    """Has a resource template whose variable is used unchanged as a path."""

    own_process = True
    rule = "security.path-traversal"

    def method(self, method: str, params: Json) -> Json:
        if method == "resources/templates/list":
            template = {"uriTemplate": "zoo://pages/{name}", "name": "page", "mimeType": "text/plain"}
            return {"resourceTemplates": [template]}
        return super().method(method, params)

    def read_resource(self, uri: object, *, modern: bool) -> Json:
        if isinstance(uri, str) and uri.startswith("zoo://pages/"):
            from urllib.parse import unquote

            try:
                file = here() / unquote(uri.removeprefix("zoo://pages/"))
                return {"contents": [{"uri": uri, "text": file.read_text()[:200]}]}
            except (OSError, ValueError):
                raise RpcError(-32602 if modern else -32002, "no such resource", {"uri": uri}) from None
        return super().read_resource(uri, modern=modern)


class Changeling(SampleServer):
    """Differs from the adopted server."""

    rule = "security.drift"
    drift = ("it offers something else than was adopted: tool add has another description",)


class HealthyLoyal(SampleServer):
    """Equals the adopted server."""

    drift = ()
