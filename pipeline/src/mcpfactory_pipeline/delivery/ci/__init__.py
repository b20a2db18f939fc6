"""Running the pipeline at a CI provider: what changed is assigned to jobs, and what they found is folded into one state.

`shards`, `workflow`, `release` and `gitlab` are pure texts; `fold` merges the histories of jobs, and the files that their bundles
(`bundle`) hold, each below the hash of its bytes. `origin` says where jobs and uv take the factory from, `origin_files` and `vendored`
make the workspace follow it.
"""
