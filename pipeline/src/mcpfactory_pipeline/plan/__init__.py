"""What a stage is, policies and gates, and the plan: from stages, state and fingerprints to what must run, and why.

Pure, but for fingerprints, which read the files of a server.
"""
