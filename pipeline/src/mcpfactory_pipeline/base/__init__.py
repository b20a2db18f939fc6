"""Utilities for every part of the pipeline."""
