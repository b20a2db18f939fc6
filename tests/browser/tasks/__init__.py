"""Tasks of dashboard users in a real browser: `python -m tests.browser.tasks`."""
