"""What the subcommands do: clients of a host, plain text out."""
