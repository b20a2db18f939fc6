"""The source tree in figures: modules, imports, names, and how many files a change or a call leads through."""
