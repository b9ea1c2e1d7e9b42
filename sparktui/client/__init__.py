"""Talking to a host: finding runs, starting and re-starting their hosts, the socket."""
