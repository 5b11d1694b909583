"""The engine of long runs: shards, parts, executors and pages of reports."""
