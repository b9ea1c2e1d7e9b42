"""WHAT to run: YAML to frozen dataclasses to argv and environment.

Import from the modules: find (names and files), decode (load), variants, argv (launch_spec, plan), render.
"""
