"""Pipeline runs at a CI provider: changed servers are assigned to jobs, and job results are merged into one state.

`github` and `gitlab` are pure text generators. `fold` assigns servers to jobs (`shards`). It also merges the histories
of jobs, and the files in their bundles (`bundle`), which are named by the hash of their bytes. `origin` defines where
jobs and uv get the factory (also from wheels in a folder), and updates the workspace to match.
"""
