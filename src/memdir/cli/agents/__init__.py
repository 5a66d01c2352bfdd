"""Commands for agent hosts: `init` and `deinit` set them up, `hook` and `mcp` are what they run.

Options come in; files of hosts are changed by `agents.installers`. Start with `setup`, which `init` and `deinit` share.
"""
