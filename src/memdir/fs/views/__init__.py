"""Virtual nodes over a filesystem: `/profile.md`, `/profile/` and `/.memdir/`. Made on reading, unchangeable, never synced."""

from memdir.fs.views.names import HIDDEN_NAME, PROFILE_NAME, is_virtual
from memdir.fs.views.nodes import VirtualDir, VirtualFile, VirtualNode
from memdir.fs.views.overlay import View, ViewVfs
from memdir.fs.views.profile import ProfileFolder, ProfileView, read_pages, render_profile, stored_pages
from memdir.fs.views.siblings import Sibling, SiblingVfs
from memdir.fs.views.status import StatusView

__all__ = [
    "HIDDEN_NAME",
    "PROFILE_NAME",
    "ProfileFolder",
    "ProfileView",
    "Sibling",
    "SiblingVfs",
    "StatusView",
    "View",
    "ViewVfs",
    "VirtualDir",
    "VirtualFile",
    "VirtualNode",
    "is_virtual",
    "read_pages",
    "render_profile",
    "stored_pages",
]
