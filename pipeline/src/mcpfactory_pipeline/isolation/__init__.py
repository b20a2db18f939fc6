"""What a server's code may see and touch while the pipeline builds, tests and checks it: a sandbox, made by one of several levels."""
