"""Pipeline runs in CI: the split of servers into jobs, and the merge of job results into the workspace.

`github` and `gitlab` generate the CI files as text. `fold` assigns servers to jobs and merges the results of the jobs.
A job uploads its results as a bundle (`bundle`). `factory_origin` defines the source from which jobs and uv install
mcpfactory.
"""
