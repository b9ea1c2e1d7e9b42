"""Everything that crosses a process or lands on disk: frozen dataclasses, versioned, and their codec.

Import from the modules: codec, launch, live, messages, records.
"""
