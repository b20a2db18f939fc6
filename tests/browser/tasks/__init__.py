"""What people do with the dashboard, done in a real browser: `python -m tests.browser.tasks`."""
