"""The cases, one file a group; importing them fills the registry, in the table's order."""

from . import exit_codes, signals, terminal, job_control, output, streams_seen, tree, environment, scarce  # noqa: F401
