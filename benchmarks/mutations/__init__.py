"""Do the tests that a generated server brings along notice what is wrong with it? `python -m benchmarks.mutations github`."""
