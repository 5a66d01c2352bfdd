"""How fast the NFS server answers, beside the FUSE mount of the same filesystem."""
