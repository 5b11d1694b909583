"""The engine of long runs: shards, their files, and executors."""
