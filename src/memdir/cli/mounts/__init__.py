"""Commands about mounts of this machine: mounting, looking, repairing.

A name or a path comes in (`cli.targets` says which mount is meant); the daemon of a mount is started or asked over its control
socket. Start with `mount`, then `status`.
"""
