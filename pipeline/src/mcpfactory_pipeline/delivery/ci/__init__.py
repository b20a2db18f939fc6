"""Pipeline runs at a CI provider: changed servers are assigned to jobs, and job results are merged into one state.

`github` and `gitlab` are pure text generators; `fold` assigns servers to jobs (`shards`) and merges the histories of
jobs, and the files in their bundles (`bundle`), each stored under the hash of its bytes. `origin` defines the
installation source of the factory for jobs and uv (also wheels in a folder), and updates the workspace to match it.
"""
