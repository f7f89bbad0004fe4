"""What the course team runs: build, lint, nightly, grading. Imports helpers, never the reverse."""
