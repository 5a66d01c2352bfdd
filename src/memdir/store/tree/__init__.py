"""The tree of a container: documents at paths, changed in transactions, with every change numbered and kept.

Operations come in (`operations`), `files` carries them out in one transaction each (`step`), `changes` is the ordered feed that
mounts follow, `versions` and `history` what was before. Start with `files`.
"""
