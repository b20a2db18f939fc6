"""Two examples for each command, shown in its help and on the CLI reference page."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "": ("mcpfactory", "mcpfactory -v pipeline run"),
    "init": ("mcpfactory init", "mcpfactory init tools --yes"),
    "new": ("mcpfactory new --from openapi.yaml", "mcpfactory new notes --template sqlite"),
    "demo-api": ("mcpfactory demo-api", "mcpfactory demo-api --port 0"),
    "adopt": ("mcpfactory adopt pypi:mcp-server-time==2026.1.14", "mcpfactory adopt https://mcp.example.com/mcp"),
    "template list": ("mcpfactory template list", "mcpfactory template list --json"),
    "template show": ("mcpfactory template show sqlite", "mcpfactory template show ./my-template"),
    "template new": ("mcpfactory template new tickets", "mcpfactory template new tickets --json"),
    "template check": ("mcpfactory template check ./tickets", "mcpfactory template check sqlite --json"),
    "inbox": ("mcpfactory inbox", "mcpfactory inbox books --refresh"),
    "inspect": ("mcpfactory inspect books", "mcpfactory inspect books --start --json"),
    "run": ("mcpfactory run books", "mcpfactory run books --http --port 8080"),
    "call": ("mcpfactory call books get_book -a id=7", "mcpfactory call books list_books --args '{\"limit\": 3}'"),
    "login": ("mcpfactory login books", "mcpfactory login books --device"),
    "test": ("mcpfactory test books", "mcpfactory test books --record https://api.example.com"),
    "validate": ("mcpfactory validate books", 'mcpfactory validate --command "npx -y my-server"'),
    "waive": (
        'mcpfactory waive descriptions.tool --server books --expires 2027-03-31 -m "rewritten in 2.0"',
        'mcpfactory waive lists.stable --server books --tool now --expires 2027-03-31 -m "named after the day"',
    ),
    "evaluate": ("mcpfactory evaluate books", "mcpfactory evaluate books --model openai:gpt-5 --report"),
    "diff": ("mcpfactory diff books", "mcpfactory diff books --against main"),
    "pipeline plan": ("mcpfactory pipeline plan", "mcpfactory pipeline plan books"),
    "pipeline run": ("mcpfactory pipeline run", "mcpfactory pipeline run books --until test"),
    "pipeline refresh": ("mcpfactory pipeline refresh", "mcpfactory pipeline refresh books --dry-run"),
    "pipeline status": ("mcpfactory pipeline status", "mcpfactory pipeline status books --graph mermaid"),
    "pipeline history": ("mcpfactory pipeline history books", "mcpfactory pipeline history books validate"),
    "pipeline promote": ("mcpfactory pipeline promote books", "mcpfactory pipeline promote books --channel beta"),
    "pipeline approve": (
        'mcpfactory pipeline approve books -m "tried"',
        "mcpfactory pipeline approve books --stage legal",
    ),
    "pipeline reject": (
        'mcpfactory pipeline reject books -m "prices lack a currency"',
        'mcpfactory pipeline reject books --stage legal -m "names are missing"',
    ),
    "pipeline rollback": (
        'mcpfactory pipeline rollback books -m "search is empty"',
        'mcpfactory pipeline rollback books --channel staging --candidate 1f3a -m "slow"',
    ),
    "pipeline hold": (
        'mcpfactory pipeline hold books -m "no releases in December"',
        'mcpfactory pipeline hold books --channel staging -m "load test"',
    ),
    "pipeline unhold": (
        'mcpfactory pipeline unhold books -m "January"',
        'mcpfactory pipeline unhold books --channel staging -m "load test is over"',
    ),
    "pipeline retire": (
        'mcpfactory pipeline retire books -m "replaced by library"',
        'mcpfactory pipeline retire books --channel beta -m "the beta is over"',
    ),
    "pipeline revive": (
        'mcpfactory pipeline revive books -m "still used"',
        "mcpfactory pipeline revive books --dry-run",
    ),
    "pipeline verify": ("mcpfactory pipeline verify", "mcpfactory pipeline verify books --repair"),
    "pipeline restore": ("mcpfactory pipeline restore", "mcpfactory pipeline restore books --candidate 1f3a"),
    "pipeline prune": ("mcpfactory pipeline prune --dry-run", "mcpfactory pipeline prune books"),
    "release plan": ("mcpfactory release plan", "mcpfactory release plan books --json"),
    "release apply": ("mcpfactory release apply", "mcpfactory release apply books"),
    "release note": (
        'mcpfactory release note books "Faster search"',
        'mcpfactory release note books "Fixed empty titles" --kind fixed',
    ),
    "release check": (
        "mcpfactory release check books-v1.2.0",
        "mcpfactory release check books-v1.2.0 --provider github",
    ),
    "publish": ("mcpfactory publish books", "mcpfactory publish books --target pypi --target registry --dry-run"),
    "install": ("mcpfactory install books --client claude-code", "mcpfactory install books --client cursor --project"),
    "uninstall": ("mcpfactory uninstall books", "mcpfactory uninstall books --client cursor"),
    "ci": ("mcpfactory ci --provider github", "mcpfactory ci --check"),
    "ci matrix": ("mcpfactory ci matrix", "mcpfactory ci matrix --provider github"),
    "ci run": ("mcpfactory ci run results", "mcpfactory ci run results books notes"),
    "ci pack": ("mcpfactory ci pack results", "mcpfactory ci pack results books"),
    "ci fold": ("mcpfactory ci fold results", "mcpfactory ci fold results --branch main --summary summary.md"),
    "update": ("mcpfactory update books", "mcpfactory update books --from openapi-2.yaml --dry-run"),
    "rename": ("mcpfactory rename books library --dry-run", "mcpfactory rename books library"),
    "remove": ("mcpfactory remove books --dry-run", 'mcpfactory remove books --yes -m "replaced by library"'),
    "doctor": ("mcpfactory doctor", "mcpfactory doctor books --json"),
    "schema": ("mcpfactory schema", "mcpfactory schema server"),
    "dashboard": ("mcpfactory dashboard", "mcpfactory dashboard --export site"),
    "serve": ("mcpfactory serve", "mcpfactory serve --server books --server notes"),
}
