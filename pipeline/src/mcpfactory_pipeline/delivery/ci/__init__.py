"""Pipeline runs at a CI provider: changed servers are assigned to jobs, and job results are merged into one state.

`github` and `gitlab` are pure text generators. `fold` assigns servers to jobs (`shards`), and merges the histories and
files of the jobs. A job uploads its files in a bundle (`bundle`). The name of each file is the hash of its bytes.
`factory_origin` defines the place from which jobs and uv install the factory, and updates the workspace to match.
"""
