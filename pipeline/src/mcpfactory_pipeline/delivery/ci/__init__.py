"""Pipeline runs in CI: servers are split into jobs, and job results are merged into the workspace.

`github` and `gitlab` generate the CI files. `factory_origin` defines where CI jobs and uv get mcpfactory.
"""
