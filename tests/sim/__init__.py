"""A whole world in one thread: machines with mounts, their server, network, disks, clocks and crashes, all from one seed."""
