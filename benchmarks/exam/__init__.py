"""The examinations from outside: `python -m benchmarks.exam`."""
