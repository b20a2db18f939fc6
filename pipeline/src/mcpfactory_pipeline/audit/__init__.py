"""What the servers in the configurations of MCP clients may do, and what of it a person should look at. Nothing is started unless asked.

`configuration` finds and reads the files of all clients, `inventory` makes of them the servers that they start, `command_line` says of a
command what it is the command of, `mentions` which values are secrets. `rules.RULES` is the table of what is looked for; all of that is
pure. `machine` asks the file system what a command leads to, `start` starts servers and lists their tools when a person wants that,
`accepted` keeps what a person accepted and says what has changed since. `formats` writes the report.
"""

from mcpfactory_pipeline.audit.audit import AuditRequest, audit
from mcpfactory_pipeline.audit.report import AuditFinding, AuditReport
from mcpfactory_pipeline.audit.rules import RULES

__all__ = ["RULES", "AuditFinding", "AuditReport", "AuditRequest", "audit"]
