"""Pipeline runs in CI: servers are split into jobs, and job results are merged into the workspace."""
