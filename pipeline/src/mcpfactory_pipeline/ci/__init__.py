"""Running the pipeline at a CI provider: what changed is dealt out to jobs, and what they found is folded into one state."""
